"""A test with the pytest plugin: an emulator of its own, a client, an order, and what was charged."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.benchmarks.measure import Ratio, cpu_seconds

TESTS = 300
HEAD = "import pytest\n@pytest.mark.parametrize('number', range({}))\n"
ORDER = """\
def test_order(number, hosting_client, hosting_account, hosting_clock):
    hosting_client.servers.create(tariff_id=1, os="debian-12", name="web")
    assert (hosting_account.servers, str(hosting_account.charged)) == (["web"], "5.00")
"""
EMPTY = "def test_nothing(number):\n    pass\n"


def ratios() -> Iterator[Ratio]:
    with TemporaryDirectory() as name:
        _seconds(Path(name), ORDER, 1)  # what the first test loads
        ours, base = (_seconds(Path(name), text, TESTS) / TESTS for text in (ORDER, EMPTY))
    note = f"{(ours - base) * 1000:.1f} ms of the processor a test, at most 5"
    yield Ratio("a test with an emulator, an order and its charge", ours, "an empty test", base, note)


def _seconds(directory: Path, text: str, tests: int) -> float:
    module = directory / f"test_{len([*directory.iterdir()])}.py"  # a module is imported once in a process
    module.write_text(HEAD.format(tests) + text)
    options = ["-q", "--no-summary", "-p", "no:cacheprovider", "-p", "pulumi_hosting.testing.pytest_fixtures"]
    options += ["-c", "/dev/null", "--rootdir", str(directory), str(module)]
    codes: list[object] = []
    seconds = cpu_seconds(lambda: codes.append(pytest.main(options)))
    assert codes == [0]
    return seconds
