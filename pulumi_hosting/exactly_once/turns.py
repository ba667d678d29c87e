"""One purchase of a thing at a time, among the threads and processes of this user on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager

from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.session.request import Request

_SECONDS = 60.0  # to wait at least for the turn of another process


@contextmanager
def turn(request: Request, purpose: str, doing: str) -> Iterator[None]:
    """Hold ``purpose``, such as ``domain shop.com``, so that each sees what the one before it has bought. A
    test key buys nothing, and takes turns with the threads of its process alone. ``doing``: in words, for
    those who wait. Raises ``LockTimeout``, ``LocalFilesError``.
    """
    with request.ownership.lock(purpose):
        if request.client.is_test_key:
            yield
            return
        with local_files.lock(
            local_files.account_scope(request.client),
            purpose,
            max(request.wait_timeout, _SECONDS),
            on_wait=lambda: request.info(f"another run on this machine is {doing}: waiting for it"),
            check=lambda: request.clock.sleep(0.0),
        ):
            yield
