"""tessera run: import torch means Tessera, here and in child processes."""

import os
import subprocess
import sys
from pathlib import Path

import tessera

ENV = {**os.environ, "PYTHONPATH": str(Path(tessera.__file__).parent.parent)}
PROGRAM = """
import sys
import torch, torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.nn.parameter import Parameter
import tessera, tessera.nn
assert torch is tessera and nn is tessera.nn and Parameter is tessera.nn.Parameter
assert F.__name__ == "tessera.nn.functional" and F.__spec__.name == F.__name__
assert __name__ == "__main__"
print(sys.argv[1:], torch.ones(2) + 1, torch.cuda.device_count())
"""


def run(*words, env=ENV, **options):
    done = subprocess.run(
        [sys.executable, "-m", "tessera", "run", *words],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_script_with_arguments(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM + "import helper; print(helper.value, __file__)\n")
    (tmp_path / "helper.py").write_text("value = 'beside the script'\n")
    out = run(str(script), "--flag", "1")
    assert out.startswith("['--flag', '1'] tensor([2., 2.])")
    assert "beside the script" in out and str(script) in out


def test_code_and_module(tmp_path):
    assert "tensor([2., 2.])" in run("-c", PROGRAM)
    (tmp_path / "program.py").write_text(PROGRAM)
    assert "['x'] tensor([2., 2.])" in run("-m", "program", "x", cwd=tmp_path)


def test_virtual_gpu():
    env = {k: v for k, v in ENV.items() if k != "TESSERA_VIRTUAL_GPU"}
    assert run("--virtual-gpu", "3x64MiB", "-c", PROGRAM, env=env).strip().endswith("3")


def test_children(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'import torch.nn as n; print(n.__name__)'],"
        " check=True)\n"
        "import multiprocessing as mp\n"
        "import torch\n"
        "def work(q): q.put(torch.ones(3).sum().item())\n"
        "if __name__ == '__main__':\n"
        "    for kind in ('fork', 'spawn'):\n"
        "        context = mp.get_context(kind)\n"
        "        q = context.Queue()\n"
        "        p = context.Process(target=work, args=(q,))\n"
        "        p.start(); print(kind, q.get(timeout=60)); p.join()\n"
    )
    out = run(str(script))
    assert "tessera.nn" in out and "fork 3.0" in out and "spawn 3.0" in out


def test_missing_module_is_named():
    out = run("-c", "try: import torch.nowhere\nexcept ImportError as e: print(e)")
    assert "No module named 'torch.nowhere'" in out


def test_usage():
    done = subprocess.run(
        [sys.executable, "-m", "tessera", "run", "nowhere.py"],
        env=ENV,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "nowhere.py" in done.stderr


def test_import_is_quick():
    code = (
        "import time; t = time.perf_counter(); import tessera, tessera.nn, tessera.optim; "
        "print(time.perf_counter() - t)"
    )
    times = [
        float(
            subprocess.run(
                [sys.executable, "-c", code], env=ENV, capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(5)
    ]
    assert min(times) < 0.1
