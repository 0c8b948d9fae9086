"""Wrong calls of the Python API raise PyTorch's kind of error with PyTorch's message.

data/refusals.json has PyTorch's answers (written by refusals.py). Where Tessera's differ, for
example because the message says more, data/refusals_differ.json has Tessera's own:
`python test_refusals.py` writes it anew, and its diff shows what changed.
"""

import json
from pathlib import Path

import pytest
import refusals

import tessera as torch

DATA = Path(__file__).parent / "data"
EXPECTED = json.loads((DATA / "refusals.json").read_text())["cases"]
DIFFER = DATA / "refusals_differ.json"


def in_torch(answer):
    """Tessera's types are PyTorch's under another name; sets are printed in no fixed order."""
    if answer is None:
        return None
    kind, message = answer
    message = message.replace("tessera._C.", "torch._C.").replace("tessera.", "torch.")
    if "one of {'" in message:
        message = message.partition("one of {'")[0]
    return [kind, message]


def found(case):
    return in_torch(refusals.outcome(torch, case))


@pytest.mark.parametrize("case", refusals.CASES)
def test_refusal(case):
    expected, own = in_torch(EXPECTED[case]), json.loads(DIFFER.read_text()).get(case, "same")
    answer = found(case)
    if own != "same":
        assert own != expected, "the recorded difference is none"
        assert answer == own
    else:
        assert answer == expected


def test_every_case_is_recorded():
    assert set(EXPECTED) == set(refusals.CASES)
    assert set(json.loads(DIFFER.read_text())) <= set(refusals.CASES)


if __name__ == "__main__":
    differ = {c: found(c) for c in refusals.CASES if found(c) != in_torch(EXPECTED[c])}
    DIFFER.write_text(json.dumps(differ, indent=0) + "\n")
    print(len(differ), "differ")
