"""`tessera bench`: tables and plots, made with small sizes."""

import os
import subprocess
import sys
import xml.dom.minidom
from pathlib import Path

import pytest
from conftest import KIND

import tessera
from tessera._bench.plot import Bars, Plot, svg, table, terminal


def bench(*args):
    env = {**os.environ, "PYTHONPATH": str(Path(tessera.__file__).parents[1])}
    if KIND == "cpu":
        env["CUDA_VISIBLE_DEVICES"] = ""
    command = [sys.executable, "-m", "tessera", "bench", *args]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("name", ["transfer", "amp", "cpu-vs-gpu"])
def test_quick(name, tmp_path):
    done = bench(name, "--quick", "-o", str(tmp_path / "plot.svg"))
    if KIND == "cpu" and name != "amp":
        assert done.returncode == 1 and "needs a GPU: " in done.stdout
        return
    assert done.returncode == 0, done.stderr
    plot = xml.dom.minidom.parse(str(tmp_path / "plot.svg")).documentElement
    assert plot.tagName == "svg" and plot.getElementsByTagName("polyline")
    words = {
        "transfer": ["to the GPU, pinned", "to the host, pageable", "16 MB", "GB/s"],
        "amp": ["float32", "autocast bfloat16", "100 steps", "last loss"],
        "cpu-vs-gpu": ["matmul and transfers", "pointwise", "the GPU wins "],
    }
    for word in words[name]:
        assert word in done.stdout
    if name == "amp" and KIND != "cpu":
        assert "GradScaler" in done.stdout and "Peak memory" in done.stdout
        losses = [
            line.split()[-1]
            for line in done.stdout.splitlines()
            if line.endswith(tuple("0123456789")) and " ms " in line
        ]
        assert len(losses) == 3
        assert max(map(float, losses)) - min(map(float, losses)) < 0.05


def test_unknown():
    assert bench("nothing").returncode == 2


def test_plots():
    points = {"a": [(1, 10.0), (10, 100.0), (100, 1000.0)], "b <&>": [(1, 5.0), (100, 5.0)]}
    plot = Plot("title", "size", "time", points, True, True)
    text = svg([plot, Bars("memory", "MB", {"x": 1.0, "y": 3.0})])
    document = xml.dom.minidom.parseString(text)
    assert len(document.getElementsByTagName("polyline")) == 2
    assert "b &lt;&amp;&gt;" in text
    shown = terminal(plot)
    assert shown.splitlines()[0] == "title" and "o a  x b <&>" in shown and "1000 |" in shown
    assert terminal(Bars("memory", "MB", {"x": 1.0, "y": 3.0})).splitlines()[2].count("#") == 64
    assert table(["a", "b"], [["xx", 1]]) == " a  b\n-----\nxx  1"
