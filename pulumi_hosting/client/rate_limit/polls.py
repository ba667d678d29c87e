"""Which reads are polls: looks at something that is not finished yet. They are served after all others."""

import threading


class _Next(threading.local):
    is_poll = False


_next = _Next()


def next_read_is_a_poll() -> None:
    """The next call of this thread, if it reads, is a poll."""
    _next.is_poll = True


def take() -> bool:
    """Whether the call that begins now was announced as a poll."""
    was, _next.is_poll = _next.is_poll, False
    return was
