"""What a run of the tests costs in CPU seconds.

As a program, ``python -m tests.support.cost <arguments of pytest>`` runs pytest and prints what it and every
descendant used. As a pytest plugin it adds ``--cost``: a table of CPU seconds per folder and the most
expensive tests.
"""

import contextlib
import ctypes
import os
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

_PR_SET_CHILD_SUBREAPER = 36
_TICKS = os.sysconf("SC_CLK_TCK")
_PROPERTY = "cpu"
_MOST_EXPENSIVE = 30


def main(arguments: list[str]) -> int:
    """Run pytest; its exit code. Orphaned descendants are adopted and waited for, so that they count."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False)
    _reap()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    print(
        f"cost: {used.ru_utime + used.ru_stime:.0f} CPU seconds with all descendants, in "
        f"{minutes} min {seconds:02} s"
    )
    if done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:
        print("pytest collected no test, so nothing is shown to work", file=sys.stderr)
    return done.returncode


def _reap() -> None:
    """Wait for the orphans that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return
    print("cost: a process that a test started still runs, and is not counted", file=sys.stderr)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cost", action="store_true", help="print CPU seconds per folder, and of the most expensive tests"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--cost"):
        config.pluginmanager.register(_Meter(), "cost-meter")


class _Meter:
    """Notes what this process and its living descendants used since the last test; reports carry it to
    xdist's controller.
    """

    def __init__(self) -> None:
        self.last = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            now = used_by_family(os.getpid())
            report.user_properties.append((_PROPERTY, now - self.last))
            self.last = now
        return report

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        spent = {
            report.nodeid: float(str(value))
            for reports in terminalreporter.stats.values()
            for report in reports
            if isinstance(report, pytest.TestReport) and report.when == "teardown"
            for name, value in report.user_properties
            if name == _PROPERTY
        }
        folders, files, tests = (
            defaultdict[str, float](float),
            defaultdict[str, float](float),
            defaultdict[str, float](float),
        )
        for node, seconds in spent.items():
            file = node.partition("::")[0]
            folders[str(Path(file).parent)] += seconds
            files[file] += seconds
            tests[node] += seconds
        for title, counted in (("folder", folders), ("file", files), ("test", tests)):
            terminalreporter.section(f"CPU seconds per {title}")
            for name, seconds in sorted(counted.items(), key=lambda item: -item[1])[:_MOST_EXPENSIVE]:
                terminalreporter.write_line(f"{seconds:8.2f}  {name}")


def used_by_family(pid: int) -> float:
    """CPU seconds of a process, of its living descendants, and of those they waited for."""
    total, below = _used(pid)
    for child in below:
        total += used_by_family(child)
    return total


def _used(pid: int) -> tuple[float, list[int]]:
    folder = Path(f"/proc/{pid}")
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        threads = list((folder / "task").iterdir())
    except OSError:
        return 0.0, []  # it ended meanwhile: its parent counts it
    below: list[int] = []
    for thread in threads:
        # it ended meanwhile; the children of its process are listed by another one
        with contextlib.suppress(OSError):
            below += [int(child) for child in (thread / "children").read_text().split()]
    return sum(map(int, fields[11:15])) / _TICKS, below


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
