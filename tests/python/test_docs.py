"""Every Python block of the documentation runs, and the operators' reference can be written.

A block that starts with ```python runs by itself, in a process of its own, on the CPU; with the
word `virtual` after it, on two virtual GPUs; with `no-run`, not at all.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tessera as torch

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(torch.__file__).absolute().parents[1]
BLOCK = re.compile(r"^```python([^\n]*)\n(.*?)^```$", re.M | re.S)


def blocks():
    pages = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
    for page in pages:
        text = page.read_text()
        for found in BLOCK.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            words = found.group(1).split()
            assert set(words) <= {"virtual", "no-run"}, f"{page}:{line}: {words}"
            if "no-run" not in words:
                yield pytest.param(
                    found.group(2), "virtual" in words, id=f"{page.relative_to(ROOT)}:{line}"
                )


@pytest.mark.parametrize("code, virtual", list(blocks()))
def test_block_runs(code, virtual, tmp_path):
    if os.environ.get("DEVICE", "cpu") != "cpu":
        pytest.skip("blocks choose their device themselves")
    drop = ("TESSERA_VIRTUAL_GPU", "TESSERA_FUSE")
    env = {name: value for name, value in os.environ.items() if name not in drop}
    env["PYTHONPATH"] = os.pathsep.join([str(PACKAGE), env.get("PYTHONPATH", "")])
    if virtual:
        env["TESSERA_VIRTUAL_GPU"] = "2x2GiB"
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_reference_shows_every_public_operator(tmp_path):
    script = ROOT / "tools" / "gen" / "reference.py"
    subprocess.run([sys.executable, script, "--out", tmp_path], check=True)
    index = (tmp_path / "README.md").read_text()
    for op in torch._C.all_ops():
        if op["name"].startswith("_"):
            continue
        page = (tmp_path / f"{op['family']}.md").read_text()
        assert f"\n## {op['name']}\n" in page and op["doc"] in page
        assert not op["example"] or f">>> {op['example']}\n" in page
        assert f"[{op['name']}]" in index
