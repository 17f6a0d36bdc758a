"""The example of loss scaling: float16 learns with it as float32 does, and nothing without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_loss_scaling(tmp_path):
    pytest.importorskip("sklearn", reason="the example's data come with scikit-learn")
    pytest.importorskip("matplotlib", reason="the example draws its curves with matplotlib")
    picture = tmp_path / "curves.png"
    done = subprocess.run([sys.executable, "examples/loss_scaling.py", "--epochs", "3", "--output", str(picture)], cwd=ROOT,
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    found = [float(line.split()[1].rstrip("%")) for line in done.stdout.splitlines() if line.startswith("float")]
    assert found[0] > 80 and abs(found[1] - found[0]) < 3 and found[2] < 30
    assert picture.stat().st_size > 1000
