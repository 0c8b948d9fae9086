"""The CPU's kernels give the same bits on every instruction set and with any number of threads."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

SETTINGS = [("baseline", 3), ("avx2", 1), ("avx512", 4)]


@cache
def checksums(isa, threads):
    env = {**os.environ, "TESSERA_ISA": isa, "TESSERA_NUM_THREADS": str(threads)}
    script = Path(__file__).with_name("bits.py")
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("isa, threads", SETTINGS)
def test_same_bits(isa, threads):
    plain, other = checksums("avx512", 1), checksums(isa, threads)
    assert plain.keys() == other.keys()
    assert [name for name in plain if plain[name] != other[name]] == []
