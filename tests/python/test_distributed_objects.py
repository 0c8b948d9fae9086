"""Collectives of Python objects: NumPy's, and errors of one rank."""

import pytest
from conftest import KIND
from test_distributed import PROGRAMS, need, several


@pytest.mark.skipif(KIND != "cpu", reason="the same on every device")
def test_objects():
    need("gloo")
    code, out = several(3, PROGRAMS / "objects.py", timeout=60)
    assert code == 0 and out.count("done") == 3, out
