"""``--shard 2/4``: the second of four parts of the tests, for machines that share a run. A test function is
in the same part wherever it runs, with all its parameters.
"""

import re
import zlib

import pytest


def shard(text: str) -> tuple[int, int]:
    """The number of the part, from 1, and how many there are.

    >>> shard("2/4")
    (2, 4)
    """
    found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    number, count = (int(found[1]), int(found[2])) if found else (1, 0)
    if number > count:
        raise pytest.UsageError(f"--shard: must be such as 2/4, not {text!r}")
    return number, count


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shard", default="1/1", help="run one part of the tests, such as 2/4")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    number, count = shard(config.getoption("--shard"))
    parts: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for item in items:
        parts[part_of(item.nodeid, count) == number].append(item)
    items[:] = parts[True]
    if parts[False]:
        config.hook.pytest_deselected(items=parts[False])


def part_of(nodeid: str, count: int) -> int:
    """The part, from 1, to which a test belongs.

    >>> part_of("tests/test_a.py::test_b[x]", 4) == part_of("tests/test_a.py::test_b[y]", 4)
    True
    """
    return zlib.crc32(nodeid.partition("[")[0].encode()) % count + 1
