"""The programs in README.md and docs/training.md run as they are printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = [(name, number, program) for name in ("README.md", "docs/training.md")
            for number, program in enumerate(re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.M | re.S))]


@pytest.mark.parametrize("name, number, program", PROGRAMS, ids=[f"{name}-{number}" for name, number, _ in PROGRAMS])
def test_program(name, number, program, tmp_path):
    assert PROGRAMS
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
