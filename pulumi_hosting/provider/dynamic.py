"""The dynamic provider: one class per resource. Import the resources from ``pulumi_hosting``; the providers'
place in this file is part of users' state.

The classes hold nothing and are found by name, so what Pulumi stores of them is a short reference that never
changes. A program needs no more of them than that; what serves its resources is loaded by the provider's own
process, with the first question.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    ConfigureRequest,
    CreateResult,
    DiffResult,
    ReadResult,
    ResourceProvider,
    UpdateResult,
)
from pulumi.dynamic.dynamic import PROVIDER_KEY

from pulumi_hosting.provider.names import APPLIES, TIMEOUTS, PropertyValues, Props, class_of
from pulumi_hosting.provider.sdk.exports import KINDS

STEPS = ("create", "update", "delete", "read")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")


def seconds(text: str) -> float:
    """A duration as Pulumi writes it (``90s``, ``1h30m``). Raises ``ValueError``.

    >>> seconds("1h30m"), seconds("1.5s")
    (5400.0, 1.5)
    """
    parts = _PART.findall(text)
    if not parts or "".join(amount + unit for amount, unit in parts) != text:
        raise ValueError(f"{text!r} is no duration. Next: write it like 90s, 10m or 1h30m")
    return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)


def timeouts_of(opts: pulumi.ResourceOptions) -> dict[str, float]:
    """Step → seconds, of the steps that have one. Dynamic providers do not get Pulumi's option
    ``custom_timeouts``: it travels among the properties. Raises ``ValueError``."""
    given = opts.custom_timeouts
    if given is None:
        return {}
    if isinstance(given, Mapping):
        given = pulumi.CustomTimeouts(**given)
    return {step: seconds(str(text)) for step in STEPS if (text := getattr(given, step, None))}


def timeout_of(props: PropertyValues, step: str) -> float | None:
    """The custom timeout of ``step`` in seconds, if the program sets one."""
    timeouts = props.get(TIMEOUTS)
    return (timeouts.get(step) or None) if isinstance(timeouts, Mapping) else None


if TYPE_CHECKING:
    from pulumi_hosting.provider.adapter import Adapter
    from pulumi_hosting.provider.plugin.engine_log import EngineConnection


class _Provider(ResourceProvider):
    """Serves the resource named by ``kind``. What it needs is imported by each method: a program of a
    user calls none.
    """

    kind: str
    # there is nothing in it: encrypting it for each resource would only cost time
    serialize_as_secret_always = False

    def configure(self, req: ConfigureRequest) -> None:
        # The SDK sends whole tracebacks to the engine; nothing of ours belongs into one.
        sys.tracebacklimit = 0
        _load(self.kind)
        from pulumi_hosting.provider import provider_session
        from pulumi_hosting.provider.dynamic import end_waits_on_cancel
        from pulumi_hosting.provider.failures import as_user_error
        from pulumi_hosting.provider.stack_settings import SETTINGS

        if end_waits_on_cancel():
            provider_session.SESSION.say = tell_engine
        with as_user_error():
            provider_session.SESSION.configure({name: req.config.get(f"hosting:{name}") for name in SETTINGS})
        # The SDK's process for dynamic providers is started with the engine's address too: what it charges
        # counts with the plugins'.
        provider_session.SESSION.ledger.run = _engine().address

    def check(self, _olds: Props, news: Props) -> CheckResult:
        from pulumi_hosting.provider.failures import check_failure

        with self._adapter(applies=bool(news.get(APPLIES))) as adapter:
            inputs, failures = adapter.check(_olds, news)
        return CheckResult(
            inputs, [CheckFailure("", check_failure(name, reason)) for name, reason in failures.items()]
        )

    def diff(self, _id: str, _olds: Props, _news: Props) -> DiffResult:
        with self._adapter() as adapter:
            found = adapter.diff(_id, _olds, _news)
        # What the native provider declared does not say yet who serves it: an update that changes nothing on
        # the account records that.
        unserved = PROVIDER_KEY in _news and PROVIDER_KEY not in _olds
        return DiffResult(
            changes=found.changes or unserved,
            replaces=[*found.replaces],
            delete_before_replace=found.delete_before_replace,
        )

    def create(self, props: Props) -> CreateResult:
        from pulumi_hosting.provider.failures import PartialFailure, order_still_open, paid_and_not_recorded
        from pulumi_hosting.session.errors import WaitTimeout

        with self._adapter(timeout_of(props, "create")) as adapter:
            try:
                return CreateResult(*adapter.create(props))
            except WaitTimeout as error:  # what an earlier run ordered
                raise order_still_open(error) from None
            except PartialFailure as failure:
                # the id is not final, and cannot be changed later: the next run finds the order
                if failure.refresh:
                    raise paid_and_not_recorded(failure, adapter.resource.title) from None
                # What exists must be recorded; what is still to be set is a difference in the next run.
                adapter.info(f"warning: {failure}")
                return CreateResult(failure.id, dict(failure.outputs))

    def read(self, id_: str, props: Props) -> ReadResult:
        with self._adapter(timeout_of(props, "read")) as adapter:
            return ReadResult(*(adapter.read(id_, props) or ("", {})))

    def update(self, _id: str, _olds: Props, _news: Props) -> UpdateResult:
        with self._adapter(timeout_of(_news, "update")) as adapter:
            return UpdateResult(adapter.update(_id, _olds, _news))

    def delete(self, _id: str, _props: Props) -> None:
        with self._adapter(timeout_of(_props, "delete")) as adapter:
            adapter.delete(_id, _props)

    @contextmanager
    def _adapter(self, timeout: float | None = None, *, applies: bool = False) -> "Iterator[Adapter]":
        """The resource's adapter. Its errors are reported in one line. ``timeout``: the custom one;
        ``applies``: this run is an update, so what it charges is shown once it is charged."""
        _load(self.kind)
        from pulumi_hosting.provider import provider_session
        from pulumi_hosting.provider.adapter import Adapter
        from pulumi_hosting.provider.failures import as_user_error
        from pulumi_hosting.resources import RESOURCES

        session = provider_session.SESSION
        session.applies = session.applies or applies
        announce: Callable[[str], None] | None = (lambda line: None) if session.applies else None
        with as_user_error():
            yield Adapter(RESOURCES[self.kind], session, session.say, timeout=timeout, announce=announce)


@cache
def _load(kind: str) -> None:
    """Import what a resource needs."""
    from pulumi_hosting.provider.quick_imports import quick_imports

    with quick_imports():
        from pulumi_hosting.resources import RESOURCES

        RESOURCES[kind]
        for module in ("pulumi_hosting.provider.adapter", "pulumi_hosting.client.httpx_connection", "httpx"):
            import_module(module)


PROVIDERS: Mapping[str, type[_Provider]] = {
    kind: type(f"{class_of(kind)}Provider", (_Provider,), {"kind": kind, "__module__": __name__})
    for kind in KINDS
}
"""By kind of resource."""
_BY_NAME = {provider.__name__: provider for provider in PROVIDERS.values()}


def __getattr__(name: str) -> Any:
    """A provider class by its name, as a state refers to it."""
    if name not in _BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _BY_NAME[name]


_MODULE, _SERVER, _METHOD = "pulumi.dynamic", "DynamicResourceProviderServicer", "Cancel"


def _cancel(self: Any, request: Any, context: Any) -> Any:
    # Runs with the names of the SDK's module: everything else is imported here.
    from google.protobuf import empty_pb2

    from pulumi_hosting.provider.dynamic import cancel

    cancel()
    return empty_pb2.Empty()


def cancel() -> None:
    """End every wait, and show what this process has charged and credited."""
    from pulumi_hosting.provider.provider_session import SESSION

    SESSION.cancel()
    if line := SESSION.money_line():
        tell_engine(line)


def tell_engine(line: str) -> None:
    """Information about the stack, in the engine's log. What is printed may come too late to be shown, and
    Pulumi shows what was printed and what was logged in any order."""
    _engine().info("", line)


@cache
def _engine() -> "EngineConnection":
    from pulumi_hosting.provider.plugin.engine_log import EngineConnection, engine_address

    engine = EngineConnection()
    engine.connect(engine_address(sys.argv[1:]))
    return engine


def end_waits_on_cancel() -> bool:
    """Have the process's server of dynamic providers end every wait when it is cancelled. False if
    this process is none.

    After the first Ctrl-C, and at the end of a run, Pulumi's CLI asks every provider to cancel. The SDK's
    server for dynamic providers (``pulumi.dynamic``) does nothing about it, so a wait for an order would go
    on until ``wait_timeout``, and nothing could be said at the end. gRPC holds the bound method since the
    server started, so its code is replaced.

    The SDK serves everything on four threads. Four steps that wait take them all, so the request to cancel
    gets a thread of its own: gRPC runs a method on its ``experimental_thread_pool`` if it has one, and looks
    at each call.
    """
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is None or spec.name not in (_MODULE, f"{_MODULE}.__main__"):
        return False
    method = getattr(getattr(main, _SERVER, None), _METHOD, None)
    if (
        not isinstance(method, FunctionType)
        or method.__code__.co_freevars
        or method.__code__.co_argcount != _cancel.__code__.co_argcount
    ):
        return False
    method.__code__ = _cancel.__code__
    vars(method)["experimental_thread_pool"] = ThreadPoolExecutor(1, thread_name_prefix="cancel")
    return True
