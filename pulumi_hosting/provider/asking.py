"""What the generated lookup functions come down to: asked by the program itself (form one), or by the plugin (form two)."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar

import pulumi
from pulumi.runtime import rpc

from pulumi_hosting.api.errors import HostingError
from pulumi_hosting.provider import lookups
from pulumi_hosting.provider.plugin_install import version
from pulumi_hosting.provider.schema import NAME, token
from pulumi_hosting.provider.session import SETTINGS, Session
from pulumi_hosting.provider.values import camel

T = TypeVar("T")

_SESSION = Session()


def ask(name: str, answer: type[T], /, **args: Any) -> T:
    """Ask the API now, with the environment's API key or else the stack's.

    What goes wrong is a ``pulumi.RunError``, so that a program ends with one line; its cause is the ``HostingError``.
    """
    return _asked(name, answer, _wire(args))


def ask_output(name: str, answer: type[T], /, **args: Any) -> pulumi.Output[T]:
    """Ask the API as soon as the arguments are known; secret if one of them is."""
    # In a thread: waiting for an answer would hold up the whole program.
    output: pulumi.Output[T] = pulumi.Output.from_input(_wire(args)).apply(lambda known: asyncio.to_thread(_asked, name, answer, known))
    return pulumi.Output.secret(output) if lookups.LOOKUPS[name].has_secrets else output


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
    config = pulumi.Config(NAME)
    try:
        _SESSION.configure({setting: config.get(setting) for setting in SETTINGS})
        found = lookups.call(_SESSION.client, name, args)
    except HostingError as error:
        raise pulumi.RunError(str(error)) from error
    return _typed(name, answer, found)


def _typed(name: str, answer: type[T], found: Mapping[str, Any]) -> T:
    single = lookups.LOOKUPS[name].single
    value = found if single is None else found[camel(single)]
    typed: T = rpc.translate_output_properties(value, lambda key: key, answer, transform_using_type_metadata=True)
    return typed


def _wire(args: Mapping[str, Any]) -> dict[str, Any]:
    return {camel(name): value for name, value in args.items() if value is not None}


def _options(opts: pulumi.InvokeOptions | None) -> pulumi.InvokeOptions:
    merged: pulumi.InvokeOptions = pulumi.InvokeOptions.merge(pulumi.InvokeOptions(version=version()), opts)
    return merged
