"""Random programs can be printed as Python, for comparing with PyTorch: what is printed runs."""

import subprocess
from pathlib import Path

import pytest

import tessera as torch


@pytest.fixture(scope="module")
def printed():
    program = Path(torch._C._backend_file("cpu")).parent.parent / "bin" / "fuse_random"
    if not program.exists():
        pytest.skip("fuse_random is not built")
    command = [str(program), "--print", "40", "--seed", "7", "--device", "cpu"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def data(raw, dtype, shape):
    if not raw:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(raw), dtype=dtype).reshape(shape).clone()


def test_what_is_printed_runs(printed):
    worked = refused = missing = 0
    for program in printed.split("# program ")[1:]:
        names = dict(torch=torch, data=data, foreign_data=data, poke=lambda t: None)
        names["four"] = lambda made: (list(made) + [None] * 4)[:4]
        for line in program.splitlines()[1:]:
            try:
                exec(line, names)
                worked += 1
            except SyntaxError:
                raise
            except AttributeError:  # C++ has forms that Python has not
                missing += 1
            except NameError:  # what was to make it was refused
                pass
            except Exception:
                refused += 1
    assert worked > 4 * refused > 0 and worked > 10 * missing
