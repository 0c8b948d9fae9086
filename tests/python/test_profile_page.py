"""`tessera run --profile`: one page with its data, and traces of whole programs."""

import json
import os
import re
import subprocess
import sys

import pytest
from conftest import KIND
from trace_check import check_trace

import tessera as torch
from tessera._profile_view import write_page

PROGRAM = """
import sys
import torch
a = torch.randn(64, 1024, device={device!r})
with torch.profiler.record_function("my </script> scope"):
    print(torch.relu(a * 2 + 1).sum().item() > 0)
sys.exit({code})
"""


@pytest.fixture
def run(tmp_path):
    def run_(*options, code=0):
        device = "cpu" if KIND == "cpu" else "cuda"
        script = tmp_path / "script.py"
        script.write_text(PROGRAM.format(device=device, code=code))
        package = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))
        done = subprocess.run(
            [sys.executable, "-m", "tessera", "run", *options, str(script)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": package},
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        assert done.stdout == "True\n"
        return done.stderr

    return run_


def data_of(page):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(found.group(1))


@pytest.mark.parametrize("options, name", [((), "profile.html"), (("page.html",), "page.html")])
def test_page(run, tmp_path, options, name):
    assert f"the profile is in {name}" in run("--profile", *options)
    page = (tmp_path / name).read_text()
    assert "%%" not in page
    assert not re.search(r"(src|href)\s*=|https?://", page)
    assert page.count("</script>") == 2
    data = data_of(page)
    names = data["names"]
    assert "my </script> scope" in names
    assert any(n.startswith("group::") for n in names)
    members = [m[0] for group in data["groups"] for m in group]
    assert {"mul", "add", "relu"} <= set(members)
    assert all("script.py:" in m[1] for group in data["groups"] for m in group)
    columns = [data[c] for c in ("name", "track", "depth", "category", "start", "length")]
    assert len({len(c) for c in columns}) == 1
    rows = {row[0]: row for row in data["rows"]}
    assert rows["my </script> scope"][2] == 1
    if KIND != "cpu":
        assert any(track["device"] >= 0 for track in data["tracks"])


def test_a_program_that_fails_has_a_page_too(run, tmp_path):
    run("--profile", code=3)
    assert (tmp_path / "profile.html").exists()


def test_trace_of_a_program(run, tmp_path):
    run("--profile=whole.json.gz")
    check_trace(tmp_path / "whole.json.gz")


def test_page_of_a_profile_leaves_out_the_shortest(tmp_path):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        for _ in range(50):
            torch.ones(3) + 1
    write_page(prof, tmp_path / "page.html", most_events=20)
    data = data_of((tmp_path / "page.html").read_text())
    assert len(data["start"]) == 20 and data["leftOut"] >= 80
    assert data["start"] == sorted(data["start"])
