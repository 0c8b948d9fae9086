"""Loading takes time in proportion to a file's size, whatever the file holds."""

import collections
import io
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import KIND
from costly_files import archive, get, listed, name, put

import tessera as torch

pytestmark = pytest.mark.skipif(KIND != "cpu", reason="files of the host")
HERE = Path(__file__).parent
ENV = {**os.environ, "PYTHONPATH": str(Path(torch.__file__).parent.parent), "OMP_NUM_THREADS": "1"}
# Processor seconds for a file of a million bytes; most take a few hundredths of one.
LIMIT = 0.6


def test_costly_files():
    """In a process of its own: a file without a bound would never come back."""
    command = [sys.executable, HERE / "costly_files.py", "1000000"]
    run = subprocess.run(command, env=ENV, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    lines = [line.split(" ", 3) for line in run.stdout.splitlines()]
    assert len(lines) > 30
    for seconds, size, maker, answer in lines:
        assert int(size) < 1.1e6 and float(seconds) < LIMIT, (maker, seconds, answer)
    answers = {maker: answer for _, _, maker, answer in lines}
    assert "keys of this file" in answers["key_of_shared_tuples"]
    assert "same hash" in answers["keys_with_one_hash"]
    assert answers["many_ordered_dicts"] == "list" == answers["deep_lists"]


class Plain:
    def __init__(self, *args):
        self.count = len(args)


@pytest.mark.parametrize("how", ["called", "made", "state"])
def test_allowed_classes(how):
    plain = name(__name__, "Plain")
    long = b"(" + b"K\x01" * 100_000 + b"t"
    state = b"}(" + b"".join(b"X\x08\0\0\0a%07dN" % i for i in range(20_000)) + b"u"
    if how == "state":
        data = listed(state, put(0), plain, b")\x81", (get(0) + b"b") * 50_000)
    else:
        opcode = b"R" if how == "called" else b"\x81"
        data = listed(long, put(0), plain, put(1), (get(1) + get(0) + opcode) * 50_000)
    began = time.process_time()
    with torch.serialization.safe_globals([Plain]):
        with pytest.raises(pickle.UnpicklingError, match="no pickler writes that"):
            torch.load(io.BytesIO(archive(data)))
    assert time.process_time() - began < LIMIT


def again(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file)


LONG = tuple(range(100))
ORDINARY = {
    "numbers": {i: i % 7 for i in range(50_000)},
    "pairs": {(i % 300, str(i)): None for i in range(20_000)},
    "one key in many dicts": [{("layers", 3, "weight", i % 2): i} for i in range(20_000)],
    "one long key in many dicts": [{LONG: i} for i in range(5_000)],
    "sets": {frozenset({i, i + 1}) for i in range(10_000)},
    "set of sets": {frozenset({frozenset({i}), frozenset()}) for i in range(5_000)},
    "equal numbers": {1: "int", 2.5: "float", 2**70: "large", True + 1: "two", 0j: "zero"},
    "few of one hash": {i * (2**61 - 1): i for i in range(500)},
    "sizes": {torch.Size([i, 2]): i for i in range(5_000)},
    "an ordered dict": collections.OrderedDict((i, i) for i in range(20_000)),
    "a counter": collections.Counter({i: 2 for i in range(20_000)}),
    "tensors": [torch.empty(0) for _ in range(3_000)],
    "views": list(torch.zeros(3_000).unbind()),
    "parameters": torch.nn.ParameterList([torch.zeros(1) for _ in range(300)]).state_dict(),
}


@pytest.mark.parametrize("what", ORDINARY)
def test_ordinary_files_are_read(what):
    value = ORDINARY[what]
    made = again(value)
    assert type(made) is type(value) and len(made) == len(value)
    if what not in ("tensors", "views", "parameters"):
        assert made == value


def test_one_key_is_set_again_and_again():
    data = listed(b"}(" + b"K\x05N" * 200_000 + b"K\x06N" * 100 + b"u")
    assert torch.load(io.BytesIO(archive(data))) == [{5: None, 6: None}]
