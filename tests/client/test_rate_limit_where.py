"""Where the windows of a key are: a file that all processes share, or the memory of one."""

import os
from typing import Any

import pytest

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.private_directory import LocalFilesError
from pulumi_hosting.client.rate_limit import state_file
from pulumi_hosting.client.rate_limit.limiter import RateLimiter
from pulumi_hosting.client.rate_limit.state_file import StateFile, WindowsInMemory, memory, store_name
from tests.client.support import BASE, KEY, FakeTime
from tests.client.test_rate_limit import Machine


@pytest.fixture(autouse=True)
def _no_memories(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has just begun."""
    monkeypatch.setattr(state_file, "_memories", {})


# --- where the windows are


def test_a_limiter_without_a_store_uses_the_file_of_key_and_address() -> None:
    machine = Machine(store=None)
    machine.place().step()
    assert isinstance(machine.limiter.store, StateFile)
    (name,) = os.listdir(os.environ["HOSTING_RUNTIME_DIR"])
    assert name == f"{store_name(Secret(KEY), BASE)}.rate"
    machine.limiter.close()
    assert machine.limiter.store is None
    machine.limiter.close()
    assert machine.place().step() is not None  # the file has the request that is on its way
    assert isinstance(machine.limiter.store, StateFile)


class Failing(StateFile):
    """A store that fails, once it is asked."""

    def __init__(self, failure: Exception) -> None:
        self.failure = failure
        self.closed = False

    def update(self, change: Any, now: float) -> Any:
        raise self.failure

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    "failure", [OSError("disk is full"), LocalFilesError("not ours"), TimeoutError("held")]
)
def test_where_there_can_be_no_file_each_process_has_its_own_windows(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="pulumi_hosting")
    one, other = (Machine(store=Failing(failure)) for _ in range(2))
    assert one.place().step() is None
    assert isinstance(one.limiter.store, WindowsInMemory)
    assert other.place().step() is not None  # in one process they are shared
    assert one.limiter.store is other.limiter.store
    assert f"the rate limit is not shared with other processes: {failure}" in caplog.messages


def test_the_memory_is_that_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []

    def noted(name: str) -> WindowsInMemory:
        names.append(name)
        return memory(name)

    monkeypatch.setattr("pulumi_hosting.client.rate_limit.state_file.memory", noted)
    monkeypatch.setattr(
        "pulumi_hosting.client.rate_limit.state_file.StateFile", lambda name, values: Failing(OSError(name))
    )
    Machine(store=None).place().step()
    Machine(store=Failing(OSError("full"))).place().step()
    assert len(set(names)) == 1
    assert len(names[0]) == 32


def test_a_store_is_closed_with_the_limiter() -> None:
    machine, store = Machine(), Failing(OSError("full"))
    machine.limiter.store = store
    machine.limiter.close()
    assert store.closed


def test_the_store_is_given_the_callers_time() -> None:
    time = FakeTime()
    times: list[float] = []

    class Noting(WindowsInMemory):
        def update(self, change: Any, now: float) -> Any:
            times.append(now)
            return super().update(change, now)

    limiter: RateLimiter = Machine(store=Noting(), clock=time.clock).limiter
    limiter.update(lambda windows: None)
    assert times == [1000.0]
