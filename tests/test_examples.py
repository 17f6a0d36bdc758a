"""The examples run and reach what they promise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_digits(tmp_path):
    pytest.importorskip("sklearn", reason="the example's data come with scikit-learn")
    pytest.importorskip("matplotlib", reason="the example draws its curves with matplotlib")
    picture = tmp_path / "curves.png"
    done = subprocess.run([sys.executable, "examples/digits.py", "--epochs", "6", "--min-accuracy", "90", "--output",
                           str(picture)], cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    assert "float16" in done.stdout and picture.stat().st_size > 1000
