"""What the generated lookup functions come down to: asked by the program itself (form one), or by the plugin (form two)."""

import asyncio
from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import pulumi
from pulumi.runtime import rpc

from pulumi_hosting.provider.names import NAME, camel, token
from pulumi_hosting.provider.version import version

if TYPE_CHECKING:
    from pulumi_hosting.provider.session import Session
    from pulumi_hosting.schema.lookups import Lookup

T = TypeVar("T")


def ask(name: str, answer: type[T], /, **args: Any) -> T:
    """Ask the API now, with the environment's API key or else the stack's.

    What goes wrong is a ``pulumi.RunError``, so that a program ends with one line; its cause is the ``HostingError``.
    """
    return _asked(name, answer, _wire(args))


def ask_output(name: str, answer: type[T], /, **args: Any) -> pulumi.Output[T]:
    """Ask the API as soon as the arguments are known; secret if one of them is."""
    # In a thread: waiting for an answer would hold up the whole program.
    output: pulumi.Output[T] = pulumi.Output.from_input(_wire(args)).apply(lambda known: asyncio.to_thread(_asked, name, answer, known))
    return pulumi.Output.secret(output) if _lookup(name).has_secrets else output


def invoke(name: str, answer: type[T], opts: pulumi.InvokeOptions | None, /, **args: Any) -> T:
    """Ask the plugin now, with the provider that ``opts`` names or else the stack's. What goes wrong is a ``pulumi.RunError``."""
    try:
        found = pulumi.runtime.invoke(token(name), _wire(args), _options(opts)).value
    except Exception as error:  # noqa: BLE001  # the SDK raises nothing more special for what a plugin refuses
        raise pulumi.RunError(str(error)) from None
    return _typed(name, answer, found)


def invoke_output(name: str, answer: type[T], opts: pulumi.InvokeOptions | None, /, **args: Any) -> pulumi.Output[T]:
    """Ask the plugin as soon as the arguments are known."""
    found: pulumi.Output[Any] = pulumi.runtime.invoke_output(token(name), _wire(args), _options(opts))
    return found.apply(partial(_typed, name, answer))


# --- parts -------------------------------------------------------------------------------------------------------------------


def _asked(name: str, answer: type[T], args: Mapping[str, Any]) -> T:
    # A program that looks nothing up need not load what it takes.
    from pulumi_hosting.client.exceptions import HostingError
    from pulumi_hosting.provider.lookup_tokens import call
    from pulumi_hosting.provider.stack_settings import SETTINGS

    config = pulumi.Config(NAME)
    session = _session()
    try:
        session.configure({setting: config.get(setting) for setting in SETTINGS})
        found = call(session.client, name, args)
    except HostingError as error:
        raise pulumi.RunError(str(error)) from error
    return _typed(name, answer, found)


def _typed(name: str, answer: type[T], found: Mapping[str, Any]) -> T:
    single = _lookup(name).single
    value = found if single is None else found[camel(single)]
    typed: T = rpc.translate_output_properties(value, lambda key: key, answer, transform_using_type_metadata=True)
    return typed


def _lookup(name: str) -> "Lookup":
    from pulumi_hosting.schema.lookups import LOOKUPS

    return LOOKUPS[name]


@cache
def _session() -> "Session":
    from pulumi_hosting.provider.session import Session

    return Session()


def _wire(args: Mapping[str, Any]) -> dict[str, Any]:
    return {camel(name): value for name, value in args.items() if value is not None}


def _options(opts: pulumi.InvokeOptions | None) -> pulumi.InvokeOptions:
    merged: pulumi.InvokeOptions = pulumi.InvokeOptions.merge(pulumi.InvokeOptions(version=version()), opts)
    return merged
