"""The wait with an end: for what the service finishes later."""

from typing import Protocol

from pulumi_hosting.client.rate_limit.polls import next_read_is_a_poll


class Timer(Protocol):
    """Time, handed in, so that tests need not wait. Both are seconds."""

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...


class Poller:
    """A wait with an end: pauses are short at first and grow to ``longest``, so that what is quick is
    seen at once.
    """

    def __init__(self, clock: Timer, seconds: float, longest: float) -> None:
        self._clock, self._longest = clock, longest
        self._deadline = clock.monotonic() + seconds
        self.next = min(0.5, longest)
        """Seconds of the next pause."""

    @property
    def over(self) -> bool:
        return self._clock.monotonic() >= self._deadline

    def pause(self) -> None:
        """Wait. The read that follows yields to other requests at the rate limit."""
        self._clock.sleep(self.next)
        self.next = min(self.next * 2, self._longest)
        next_read_is_a_poll()
