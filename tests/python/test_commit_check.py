"""tools/check/commits.py: the form of commit subjects."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import KIND

pytestmark = pytest.mark.skipif(KIND != "cpu", reason="the same on every device")
CHECK = Path(__file__).resolve().parents[2] / "tools" / "check" / "commits.py"


def check(tmp_path, message):
    file = tmp_path / "message"
    file.write_text(message)
    run = subprocess.run(
        [sys.executable, CHECK, "--message", file], capture_output=True, text=True, timeout=30
    )
    return run.returncode, run.stdout + run.stderr


@pytest.mark.parametrize(
    "subject",
    [
        "save: bound the work of loading",
        "cpu, cuda: round halves to even",
        "python/tessera: name the missing module",
        "Merge branch 'main'",
    ],
)
def test_good_subjects(tmp_path, subject):
    assert check(tmp_path, f"{subject}\n\nThe reason.\n# a comment\n") == (0, "")


@pytest.mark.parametrize(
    "message, problem",
    [
        ("Loading is bounded", "not `area: imperative`"),
        ("save: " + "x" * 70, "76 characters"),
        ("save: bounds the work", "'bounds' is not an imperative"),
        ("save: Bound the work", "capital"),
        ("save: bound the work.", "full stop"),
        ("save: bound the work\nat once", "second line"),
        ("", "not `area"),
    ],
)
def test_bad_subjects(tmp_path, message, problem):
    status, text = check(tmp_path, message)
    assert status == 1 and problem in text
