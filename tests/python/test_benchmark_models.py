"""benchmarks/models.py: every model runs at its small size and gives its rows."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_rows_of_two_models(tmp_path):
    out = tmp_path / "rows.json"
    command = [sys.executable, ROOT / "benchmarks" / "models.py", "--device", "cpu", "--out", out]
    command += ["--seconds", "0.2", "--limit", "60", "--only", "policy_train,llama_decode"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["name"]: row["value"] for row in json.loads(out.read_text())["rows"]}
    for name in ("policy_train", "llama_decode"):
        assert rows[name] > 0 and rows[name + "_first_s"] > 0 and name + "_settled" in rows


def test_every_model_takes_a_step(device):
    """A step of each model at its small size, on the device under test."""
    program = f"""
import sys
sys.path.insert(0, {str(ROOT / "benchmarks")!r})
import tessera
sys.modules["torch"] = tessera
import models
for name, make in models.rows_by_name().items():
    tessera.manual_seed(0)
    workload = make({str(device)!r}, True)
    result = workload.step(workload.model)
    if workload.training:
        result.backward()
        workload.optimizer.step()
    assert result.isfinite().all().item(), name
assert sorted(models.names_without_import()) == sorted(models.rows_by_name())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=240, env=os.environ
    )
    assert done.returncode == 0, done.stderr[-3000:]
