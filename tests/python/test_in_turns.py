"""benchmarks/in_turns.py on a program that measures nothing; what tools/gpu/carry.py carries."""

import importlib.util
import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import argparse, json, os
parser = argparse.ArgumentParser()
for name in ("--module", "--device", "--only", "--out"):
    parser.add_argument(name)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--fail", default="")
a = parser.parse_args()
turn = sum(1 for _ in open("turns")) if os.path.exists("turns") else 0
open("turns", "a").write(f"{a.module} {a.compile} {a.only}\\n")
factor = 1 if a.module == "tessera" else 3 if a.compile else 4
rows = [dict(name="step", value=factor * (10 + turn // 3), unit="us", lower=True)]
rows.append(dict(name="copy", value=12 / factor, unit="GB/s", lower=False))
if a.fail == a.module:
    rows.append(dict(name="broken", error="no such thing"))
json.dump(dict(rows=rows), open(a.out, "w"))
"""


def in_turns(folder, *words):
    program = folder / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, ROOT / "benchmarks" / "in_turns.py", program, "--device", "cpu"]
    return subprocess.run([*command, *words], cwd=folder, capture_output=True, text=True)


def test_medians_side_by_side(tmp_path):
    done = in_turns(tmp_path, "--only", "a,b", "--compiled", "b", "--out", tmp_path / "kept")
    assert done.returncode == 0, done.stderr
    head, step, copy = (line.split() for line in done.stdout.splitlines())
    assert head == [
        "unit",
        "PyTorch",
        "compiled",
        "Tessera",
        "beside",
        "PyTorch",
        "beside",
        "compiled",
    ]
    assert step[2:] == "44 (40 to 48) 33 (30 to 36) 11 (10 to 12) 4.00 x 3.00 x".split()
    assert copy[2:] == "3 (3 to 3) 4 (4 to 4) 12 (12 to 12) 4.00 x 3.00 x".split()
    turn = ["torch False a,b", "torch True b", "tessera False a,b"]
    assert (tmp_path / "turns").read_text().splitlines() == turn * 3
    assert len(json.loads((tmp_path / "kept" / "tessera3.json").read_text())["rows"]) == 2


@pytest.mark.parametrize("module, status", [("tessera", 1), ("torch", 0)])
def test_a_row_that_fails_is_told(tmp_path, module, status):
    done = in_turns(tmp_path, "--rounds", "1", "--", "--fail", module)
    assert done.returncode == status
    assert "broken: no such thing" in done.stderr
    assert "step" in done.stdout


def test_what_is_carried_names_no_place_of_this_machine():
    build = ROOT / "build" / "release"
    if not (build / "compile_commands.json").exists():
        pytest.skip("needs build/release")
    nanobind = pytest.importorskip("nanobind")
    spec = importlib.util.spec_from_file_location("carry", ROOT / "tools" / "gpu" / "carry.py")
    carry = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(carry)
    commands = carry.binder_commands(build)
    sources = {Path(words[-1]).name for words in commands["compile"]}
    assert sources >= {file.name for file in (ROOT / "python" / "src").glob("*.cpp")}
    words = [word for command in commands["compile"] for word in command] + commands["link"]
    for place in (str(ROOT), sysconfig.get_paths()["include"], str(Path(nanobind.__file__).parent)):
        assert not [word for word in words if place in word]
    assert commands["link"].count(carry.NANOBIND_OBJECTS) == 1
    assert "python/tessera/_C@SUFFIX@" in commands["link"]


def test_a_previous_build_instead_of_pytorch(tmp_path):
    done = in_turns(tmp_path, "--previous", tmp_path)
    assert done.returncode == 0, done.stderr
    turns = [line.split()[0] for line in (tmp_path / "turns").read_text().splitlines()]
    assert turns == ["tessera"] * 6
    assert "previous" in done.stdout and "PyTorch" not in done.stdout
