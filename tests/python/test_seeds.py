"""Every code block of the documents in tests/seeds does on this device what is expected of it.

With DEVICE=cpu they see no GPU, with DEVICE=virtual two virtual ones. See tests/seeds/README.md.
"""

import sys
from pathlib import Path

import pytest
from conftest import KIND

import tessera as torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "seeds"))
import blocks

PACKAGES = Path(torch.__file__).parents[1]
BLOCKS = blocks.all_blocks()
PROGRAMS = [block.name for block in BLOCKS if block.name[:3] in ("002", "003")]


def test_every_block_has_its_place_and_what_is_expected():
    files = sorted(path.name for path in (blocks.HERE / "blocks").iterdir())
    assert files == sorted([*(block.file for block in BLOCKS), "places.tsv"])
    for block in BLOCKS:
        lines = (blocks.HERE / "blocks" / block.file).read_text().count("\n")
        assert lines == block.last - block.first + 1, block.file
        for kind in ("cpu", "virtual"):
            assert blocks.expected(block.name, kind), block.name
    for kind in ("cpu", "gpu", "one_gpu"):
        named = {path.stem for path in (blocks.HERE / "expected" / kind).iterdir()}
        assert named <= {block.name for block in BLOCKS}


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_block(block):
    gpu = "" if KIND == "cpu" else torch.cuda.get_device_name()
    said, why = blocks.verdict(block, KIND, PACKAGES, gpu)
    assert said != "fails", why


def test_what_differs_is_found():
    assert blocks.difference(["a 1.25", "b"], ["a 1.25", "b"]) is None
    assert "expected: a 1.25" in blocks.difference(["a 1.26", "b"], ["a 1.25", "b"])
    assert "missing: b" in blocks.difference(["a"], ["a", "b"])
    assert "not expected: c" in blocks.difference(["a", "c"], ["a"])
    assert blocks.difference(["x", "y", "a is here"], ["<lines>", "a..."]) is None
    assert blocks.difference(["x", "y"], ["<lines>", "a..."]) == "missing: a..."
    assert (
        blocks.difference(["on Some GPU, 3.5 ms"], ["on <gpu>, <number> <word>"], "Some GPU")
        is None
    )
    assert blocks.difference(["1.2391717433929443"], ["1.2391716241836548"]) is None
    assert blocks.difference(["1.2391727433929443"], ["1.2391716241836548"])
    assert blocks.difference(["0.3681"], ["0.3680"], exact=False) is None
    assert blocks.difference(["0.3781"], ["0.3680"], exact=False)
