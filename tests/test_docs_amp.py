"""docs/amp.md: each test that it names exists, and its programs run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "amp.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/\w+\.py)::(\w+)`", TEXT)))
PROGRAMS = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)


@pytest.mark.parametrize("file, name", NAMED)
def test_named_tests_exist(file, name):
    assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.M)


def test_each_row_names_a_test():
    heads = re.compile(r"\| (feature|fault|level|O\d|\*\*)")
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and not heads.match(line)]
    assert len(rows) > 50 and all("::test_" in row for row in rows)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_programs(number):
    exec(compile(PROGRAMS[number], f"docs/amp.md, program {number}", "exec"), {})
