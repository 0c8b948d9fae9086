"""`tessera check`: what a program uses that is missing, found without running it."""

import subprocess
import sys

import pytest

from tessera.check import check_program, check_source


def texts(source):
    return [f"{f.line}: {f.text}" for f in check_source(source)]


def test_a_program_that_needs_nothing():
    assert texts("import torch\nx = torch.zeros(2).add(1)\nprint(x.sum(), torch.float32)\n") == []
    assert texts("import os\nos.path.join('a').cudnn_grid_sampler") == []


@pytest.mark.parametrize(
    "lines, name",
    [
        ("import torch\ntorch.cudnn_grid_sampler(1)", "2: torch.cudnn_grid_sampler"),
        ("import torch as t\nt.cudnn_grid_sampler(1)", "2: torch.cudnn_grid_sampler"),
        ("import tessera as torch\nx = torch.cudnn_grid_sampler", "2: torch.cudnn_grid_sampler"),
        ("import torch.nn as nn\nnn.quantized.FloatFunctional()", "2: torch.nn.quantized.Float"),
        ("import torch.fx", "1: torch.fx"),
        ("from torch import fx", "1: torch.fx"),
        ("from torch.fx import wrap as w", "1: torch.fx.wrap"),
        ("from torch import nn as n\nn.quantized.DeQuantize", "2: torch.nn.quantized.DeQuantize"),
        ("def f():\n    import torch\n    torch.cudnn_grid_sampler", "3: torch.cudnn_grid_sampler"),
        ("import torch\ntorch.Tensor.q_per_channel_axis", "2: torch.Tensor.q_per_channel_axis"),
    ],
)
def test_missing_names(lines, name):
    (text,) = texts(lines)
    assert text.startswith(name) and "is not implemented in Tessera yet" in text


def test_typing_errors_and_the_nearest_name():
    (text,) = texts("import torch\ntorch.zeross(2)")
    assert text == (
        "2: torch.zeross is known neither to PyTorch nor to Tessera; nearest: torch.zeros"
    )


@pytest.mark.parametrize(
    "line",
    [
        "torch.ones(2).q_per_channel_axis(3)",
        "x = torch.ones(2); x.q_per_channel_axis(3)",
        "x = torch.ones(2); y = (x + 1)[0].T; y.q_per_channel_axis",
        "def f(x: torch.Tensor): x.q_per_channel_axis",
        "import torch.nn.functional as F; F.relu(3).q_per_channel_axis",
        "a, b = torch.ones(2), 3; a.q_per_channel_axis",
    ],
)
def test_methods_of_tensors(line):
    (text,) = texts("import torch\n" + line)
    assert text == "2: Tensor.q_per_channel_axis is not implemented in Tessera yet"


def test_methods_of_what_may_be_tensors():
    (text,) = texts("import torch\ndef f(x):\n    return x.q_per_channel_axis(1)")
    assert (
        text
        == "3: Tensor.q_per_channel_axis is not implemented in Tessera yet (if this is a tensor)"
    )
    # What the program defines, and what other modules have, is no tensor's.
    assert (
        texts("import torch\nclass A:\n    def q_per_channel_axis(s): s.x.q_per_channel_axis") == []
    )
    assert texts("import torch, other\nother.q_per_channel_axis()") == []
    assert texts("import torch\ndef f(x):\n    return x.split(',')") == []
    (text,) = texts("import torch\ntorch.ones(2).foo_bar()")
    assert "Tensor.foo_bar is known neither" in text


def test_keywords():
    assert texts("import torch\ntorch.sum(x, axis=0, keepdims=True)\nx.sum(dim=3)") == []
    (text,) = texts("import torch\ntorch.sum(x,\n  dimm=0)")
    assert text == "3: torch.sum() takes no argument dimm= in Tessera yet; nearest: dim="
    (text,) = texts("import torch\ntorch.ones(2).sum(dimm=0)")
    assert text == "2: Tensor.sum() takes no argument dimm= in Tessera yet; nearest: dim="
    (text,) = texts("from torch import optim\noptim.SGD([], lr=1, no_such=1)")
    assert text.startswith("2: torch.optim.SGD() takes no argument no_such=")
    assert texts("import torch.nn.functional as F\nF.relu(x, inplace=True)") == []


def test_what_the_program_asks_for_is_not_missed():
    asks = "import torch\nif hasattr(torch, 'fx'):\n    torch.fx.wrap()\n"
    assert texts(asks) == []
    assert texts("import torch\nx = torch.fx.wrap if hasattr(torch, 'fx') else 1") == []
    assert texts("import torch\nif not hasattr(torch, 'fx'):\n  pass\nelse:\n  torch.fx") == []
    assert texts(asks + "else:\n    torch.fx\n")[0].startswith("5:")


def test_modules_beside_the_program(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "main.py").write_text("import helper\nfrom package import part\n")
    (tmp_path / "helper.py").write_text("import torch\nimport main\ntorch.cudnn_grid_sampler\n")
    (tmp_path / "unused.py").write_text("import torch\ntorch.cudnn_grid_sampler\n")
    (tmp_path / "package/__init__.py").write_text("from .deep import *\n")
    (tmp_path / "package/part.py").write_text("import helper\n")
    (tmp_path / "package/deep.py").write_text("import torch.fx\n")
    found = check_program([str(tmp_path / "main.py")])
    names = {path.removeprefix(str(tmp_path) + "/"): len(found[path]) for path in found}
    assert names == {
        "main.py": 0,
        "helper.py": 1,
        "package/__init__.py": 0,
        "package/part.py": 0,
        "package/deep.py": 1,
    }
    assert len(check_program([str(tmp_path)])) == 6


def test_the_command(tmp_path):
    def check(*args):
        command = [sys.executable, "-m", "tessera", "check", *args]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    (tmp_path / "good.py").write_text("import torch\ntorch.ones(2)\n")
    (tmp_path / "bad.py").write_text("import torch\n\ntorch.fx.wrap(2)\n")
    (tmp_path / "broken.py").write_text("import torch\n(\n")
    assert check("good.py") == (0, "1 file: nothing missing\n", "")
    status, out, _ = check("good.py", "bad.py")
    assert status == 1 and out.splitlines() == [
        "bad.py:3: torch.fx.wrap is not implemented in Tessera yet",
        "2 files: 1 missing",
    ]
    assert check("broken.py")[0] == check("nowhere.py")[0] == check()[0] == 2
