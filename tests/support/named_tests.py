"""Tests that tables name."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def is_there(test: str) -> bool:
    """Whether there is a test ``tests/folder/test_file.py::test_name``."""
    path, _, name = test.partition("::")
    source = ROOT / path
    pattern = rf"^def {re.escape(name)}\("
    return source.is_file() and bool(re.search(pattern, source.read_text(encoding="utf-8"), re.MULTILINE))
