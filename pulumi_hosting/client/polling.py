"""The wait with an end: for what the service finishes later."""

from contextvars import ContextVar
from typing import Protocol


class Timer(Protocol):
    """Time, handed in, so that tests need not wait. Both are seconds."""

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float, /) -> object: ...


class Poller:
    """A wait with an end: pauses are short at first and grow to ``longest``, so that what is quick is
    seen at once.
    """

    def __init__(self, clock: Timer, seconds: float, longest: float) -> None:
        self._clock, self._longest = clock, longest
        self._deadline = clock.monotonic() + seconds
        self.next = self.last = min(0.5, longest)
        """Seconds of the next pause, and of the latest one."""

    @property
    def over(self) -> bool:
        return self._clock.monotonic() >= self._deadline

    def pause(self) -> None:
        """Wait. The read that follows yields to other requests at the rate limit."""
        self._clock.sleep(self.next)
        self.paused()

    def paused(self) -> None:
        """A pause of ``next`` seconds is over."""
        self.last, self.next = self.next, min(self.next * 2, self._longest)
        next_read_is_a_poll()


# --- which reads are polls: looks at what is not finished yet, served after all others

_next: ContextVar[bool] = ContextVar("next_read_is_a_poll", default=False)


def next_read_is_a_poll() -> None:
    """The next call of this thread or task, if it reads, is a poll."""
    _next.set(True)


def take() -> bool:
    """Whether the call that begins now was announced as a poll."""
    was = _next.get()
    if was:
        _next.set(False)
    return was
