"""What every test may ask for: an emulator, a dialect, an engine, a warm Python. The summary at the end
names the engines that ran.
"""

import gc
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from pulumi_hosting.emulator import Running
from pulumi_hosting.offline.storage.passphrase import WEAK_SECRETS
from pulumi_hosting.rehearsal import engines
from pulumi_hosting.rehearsal.warm_python import WarmPython
from pulumi_hosting.session.clock import RunClock
from tests.support import browser
from tests.support.account import Account
from tests.support.emulators import EmulatorPool

pytest_plugins = ["pytester", "tests.support.cost", "tests.support.shards", "tests.support.uncovered"]

# a new stack's key costs a quarter of a second in every process otherwise
os.environ["HOSTING_OFFLINE_WEAK_TEST_SECRETS"] = "1"
_NUMBERS = itertools.count()
DIALECTS = ("spec", "live")

# No deadline: how long an example takes says something about the machine, not about us. The same examples on
# every CI run.
_COMMON = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.register_profile("loop", _COMMON, max_examples=25)
settings.register_profile("thorough", _COMMON, max_examples=100)  # make test-all
settings.load_profile("loop")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test that asks for an engine runs on the offline engine, and in ``make test-all`` on Pulumi's
    own where its CLI is on PATH.
    """
    if "engine" in metafunc.fixturenames:
        found = [
            pytest.param(engine.name, marks=[pytest.mark.slow] * (engine.name == engines.PULUMI))
            for engine in engines.available()
        ]
        metafunc.parametrize("engine", found, indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep modules and tests out of the garbage collector: they stay, and each of its passes would go over
    all of them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


_PROCESSES = {"engine", "ansible"}
"""Fixtures that start an engine or ``ansible-playbook``, which takes seconds."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave such tests to ``make test-all``, but for those that are marked ``daily``: one or two of each
    promise. What they prove is proven without a process, too, wherever it can be.
    """
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & _PROCESSES and item.get_closest_marker("daily") is None:
            item.add_marker(pytest.mark.slow)


_NEEDS = {"npm_modules": ("node", "npm")}
"""Programs that a fixture starts."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose ``@pytest.mark.program("node")`` is not on PATH. The summary at the end names each
    of these programs, and whether it ran.
    """
    fixtures = getattr(item, "fixturenames", ())
    wanted = {name for marker in item.iter_markers("program") for name in marker.args}
    wanted |= {name for fixture in fixtures for name in _NEEDS.get(fixture, ())}
    missing = sorted(name for name in wanted if shutil.which(name) is None)
    here = {name: name not in missing for name in wanted}
    if "chromium" in fixtures:  # which says itself what is missing
        here["chromium"] = any(map(shutil.which, browser.COMMANDS))
    item.user_properties += [
        ("program", f"{name} {'ran' if is_here else 'not here'}") for name, is_here in here.items()
    ]
    if missing:
        pytest.skip(f"not on PATH: {', '.join(missing)}")


@pytest.fixture(autouse=True)
def _own_local_files(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks and notes of one test are not another's: accounts and ids repeat from one emulator to the
    next.
    """
    monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(tmp_path_factory.getbasetemp() / f"run-{next(_NUMBERS)}"))


@pytest.fixture
def waits_take_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in this process does not wait: the seconds of a wait are over at once."""
    passed = [0.0]

    def sleep(_: RunClock, seconds: float) -> None:
        passed[0] += max(seconds, 0.1)

    monkeypatch.setattr(RunClock, "monotonic", lambda _: passed[0])
    monkeypatch.setattr(RunClock, "sleep", sleep)
    monkeypatch.setattr("pulumi_hosting.provider.provider_session.InterruptibleClock.sleep", sleep)


@pytest.fixture(scope="session")
def warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmPython]:
    """A Python whose processes start without importing anything."""
    python = WarmPython(tmp_path_factory.mktemp("python"))
    yield python
    python.close()


@pytest.fixture
def warm(warm_python: WarmPython, monkeypatch: pytest.MonkeyPatch) -> WarmPython:
    """Processes that the test, or a process of its own, starts through ``sys.executable`` are warm. They are
    not counted for coverage.

    Offline stacks derive their keys in few rounds.
    """
    monkeypatch.setattr(sys, "executable", str(warm_python.command))
    monkeypatch.setenv(WEAK_SECRETS, "1")
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
    return warm_python


@pytest.fixture
def engine(request: pytest.FixtureRequest, warm: WarmPython) -> engines.Engine:
    """An engine that runs Pulumi programs: offline always, and the real CLI too where there is one. Its
    Pythons are warm.
    """
    chosen = engines.choose(request.param)
    request.node.user_properties.append(("engine", str(chosen)))
    return chosen


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    """The dialect the emulator speaks: as the API's document, and as a live deployment. A test that asks
    for it runs in both.
    """
    spoken: str = request.param
    return spoken


@pytest.fixture(scope="session")
def emulator_pool(warm_python: WarmPython) -> Iterator[EmulatorPool]:
    """The emulators of this session."""
    pool = EmulatorPool(warm_python)
    yield pool
    pool.close()


@pytest.fixture
def emulator(request: pytest.FixtureRequest, emulator_pool: EmulatorPool) -> Running:
    """An emulator with a fresh account, seen over real HTTP.

    ``@pytest.mark.emulator(clock="manual", …)`` sets its options, the ``dialect`` fixture its dialect. With
    ``own=True`` no other test gets it: for tests that leave requests under way behind.
    """
    marker = request.node.get_closest_marker("emulator")
    options = dict(marker.kwargs) if marker else {}
    own = options.pop("own", False)
    if "dialect" in request.fixturenames:
        options["dialect"] = request.getfixturevalue("dialect")
    return emulator_pool.start(**options) if own else emulator_pool.get(**options)


@pytest.fixture(scope="session")
def chromium() -> Iterator[browser.Chromium]:
    """A headless Chromium. The test is skipped where none is installed."""
    with browser.started() as started:
        yield started


NPM_UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "ECONNREFUSED", "ENETUNREACH")


@pytest.fixture(scope="session")
def npm_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The npm packages that the lock file of the example in TypeScript names, in a directory of their own."""
    source = Path(__file__).parents[1] / "examples" / "typescript"
    return install_npm_packages(source, tmp_path_factory.mktemp("npm"))


def install_npm_packages(source: Path, folder: Path) -> Path:
    """Those that the lock file in ``source`` names, in ``folder``; the test is skipped if npm reaches no
    registry.
    """
    for name in ("package.json", "package-lock.json"):
        shutil.copy(source / name, folder)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
    installed = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if any(code in installed.stderr for code in NPM_UNREACHABLE):
        pytest.skip("npm reaches no registry from here")
    assert installed.returncode == 0, installed.stderr
    return folder / "node_modules"


@pytest.fixture
def account(request: pytest.FixtureRequest) -> Account:
    """A fresh account on an emulator in this process, with a manual clock.

    ``@pytest.mark.emulator(provisioning_delay=600, …)`` sets its options, the ``dialect`` fixture its
    dialect.
    """
    marker = request.node.get_closest_marker("emulator")
    options = dict(marker.kwargs) if marker else {}
    if "dialect" in request.fixturenames:
        options["dialect"] = request.getfixturevalue("dialect")
    return Account(**options)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line that tells which engines really ran, and one for the other programs that tests look for: taken
    from the reports of the tests, so it holds under xdist too.
    """
    ran: dict[str, set[str]] = {"engine": set(), "program": set()}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                for name, value in report.user_properties:
                    if name in ran:
                        ran[name].add(str(value))
    for name, values in ran.items():
        terminalreporter.write_line(f"{name}s: {', '.join(sorted(values)) or 'none'}")
