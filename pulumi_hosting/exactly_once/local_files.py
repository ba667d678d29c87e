"""Locks between the processes of one user on this machine, the turns of purchases, and short notes, in the
store of the private directory (:mod:`~pulumi_hosting.client.shared_store`) or in the one that the client's
machines share.

A purchase stops when its lock cannot be taken. The notes are a help only: without them (another machine, a
new CI job) a run finds less and stops earlier. Names are hashes of account id, mode, base URL and purpose.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from pulumi_hosting.client.client import Client
from pulumi_hosting.client.private_directory import LocalFilesError as LocalFilesError
from pulumi_hosting.client.private_directory import check_platform as check_platform
from pulumi_hosting.client.private_directory import directory as directory
from pulumi_hosting.client.private_directory import name_of
from pulumi_hosting.client.shared_store import LeaseLost, StoreRefused, StoreUnavailable, held_leases
from pulumi_hosting.client.shared_store import LockTimeout as LockTimeout
from pulumi_hosting.client.shared_store import Scope as Scope
from pulumi_hosting.session.request import Request

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")

_SECONDS = 60.0  # to wait at least for the turn of another process
_STORE_SECONDS = 60.0  # to wait for a shared store that does not answer
_NOTE_SECONDS = 30.0  # to wait for a note that another process holds for a few file operations


def account_scope(client: Client) -> Scope:
    """The scope of an account in the store of its client: a hash of account id, mode, base URL and, of an
    emulator, its start: the one before at this URL had the same ids. Asks for the account once per client;
    raises what that request raises."""
    me = client.key_owner.get()
    mode, start = "live" if me.livemode else "test", getattr(me, "emulator_start", None)
    scope = Scope(name_of(str(me.account_id), mode, client.base_url, *([str(start)] if start else ())))
    scope.store = client.store
    return scope


def lock(
    scope: Scope,
    purpose: str,
    timeout: float,
    *,
    on_wait: Callable[[], None] = lambda: None,
    check: Callable[[], None] = lambda: None,
) -> AbstractContextManager[None]:
    """Hold the lock ``purpose`` (such as ``server 20001``) of an account (``account_scope``), as
    :meth:`SharedStore.lock` does. Raises :class:`LockTimeout`, :class:`LocalFilesError`."""
    return scope.store.lock(name_of(scope, purpose), timeout, what=purpose, on_wait=on_wait, check=check)


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
        scope = account_scope(request.client)
        new = ", or the store was started within the last minute" if scope.store.spans_machines else ""
        with lock(
            scope,
            purpose,
            max(request.wait_timeout, _SECONDS) + scope.store.held_for,
            on_wait=lambda: request.info(f"another run {scope.store.where} is {doing}{new}: waiting for it"),
            check=lambda: request.clock.sleep(0.0),
        ):
            yield


class TakenAgain:
    """Around the turn of a purchase, in a loop: ends it without an error, so that the next round takes the
    turn and looks at the account again, if its lease ended meanwhile, or a shared store did not answer: for a
    minute."""

    def __init__(self, request: Request) -> None:
        self._request, self._until = request, request.clock.monotonic() + _STORE_SECONDS
        self._is_told = False

    def __enter__(self) -> None:
        """Nothing is held."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        request = self._request
        if isinstance(error, LeaseLost) and all(lease.left() > 0.0 for lease in held_leases.get()):
            request.info("this run was held up for longer than its turn lasts: looking again")
            return True  # of this turn: with that of one around it, that one is taken again
        is_away = isinstance(error, StoreUnavailable) and not isinstance(error, StoreRefused)
        if is_away and request.clock.monotonic() < self._until:
            if not self._is_told:
                request.info(f"waiting for the shared store, a minute at most: {str(error).split(';')[0]}")
            self._is_told = True
            request.clock.sleep(5.0)
            return True
        return False


def taken_again(work: Callable[Concatenate[S, Request, P], T]) -> Callable[Concatenate[S, Request, P], T]:
    """A method that takes its turn itself, as often as :class:`TakenAgain` says."""

    @wraps(work)
    def repeated(self: S, request: Request, /, *args: P.args, **options: P.kwargs) -> T:
        again = TakenAgain(request)
        while True:
            with again:
                return work(self, request, *args, **options)

    return repeated


def read(scope: Scope, purpose: str, *, survives: bool = True, kind: str = "json") -> dict[str, Any]:
    """The note that was written last for ``purpose``; empty if there is none. ``survives``, ``kind``: as it
    was written. Raises :class:`LocalFilesError`."""
    return scope.store.note(_name(scope, purpose, kind), survives=survives)


def write(
    scope: Scope, purpose: str, values: Mapping[str, Any], *, survives: bool = True, kind: str = "json"
) -> None:
    """Replace the note for ``purpose``. Call it with the lock held. No secrets. ``survives``: as in
    :class:`SharedStore`. ``kind``: the ending of the name. Raises :class:`LocalFilesError`."""
    scope.store.keep(_name(scope, purpose, kind), values, survives=survives)


def changing(scope: Scope, purpose: str, *, survives: bool = True) -> AbstractContextManager[dict[str, Any]]:
    """The note for ``purpose``, for one process at a time: changes of it are kept, unless an error ends them.
    Raises ``LockTimeout``, ``LocalFilesError``."""
    name = _name(scope, purpose, "json")
    return scope.store.changing(name, _NOTE_SECONDS, what=f"notes on {purpose}", survives=survives)


def remove(scope: Scope, purpose: str, *, kind: str = "json") -> None:
    """Remove the note for ``purpose``, if there is one. Raises :class:`LocalFilesError`."""
    scope.store.forget(_name(scope, purpose, kind))


def may_have(client: Client, kind: str) -> bool:
    """Whether the account may have a note of this kind. Not if there is none of any account: then the
    account need not be asked for. Raises :class:`LocalFilesError`."""
    return client.key_owner.is_known or bool(client.store.names(f"*.{kind}"))


def _name(scope: str, purpose: str, kind: str) -> str:
    return f"{name_of(scope, purpose)}.{kind}"
