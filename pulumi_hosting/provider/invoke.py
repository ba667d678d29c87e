"""The lookup functions of Pulumi programs, made from the table of operations when they are first used.

``get_servers`` finds now, ``get_servers_output`` as soon as its arguments are known. With the functions of
``pulumi_hosting`` the program itself calls the API, with HOSTING_API_KEY and HOSTING_BASE_URL or else the
stack's configuration. With those of ``pulumi_hosting.native`` the plugin does, with the provider that
``opts`` names or else the stack's. In a unit test (``pulumi.runtime.set_mocks``) the mocks answer both. Every
failure is a ``pulumi.RunError``: the program ends with one line.
"""

import asyncio
from collections.abc import Callable
from functools import cache, partial
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.runtime import rpc

from pulumi_hosting.provider.declaration_mistakes import looked_up, program_line, refuse, refuse_names
from pulumi_hosting.provider.final_options import mocked
from pulumi_hosting.provider.names import NAME, PropertyValues, Props, camel, token
from pulumi_hosting.provider.version import version

if TYPE_CHECKING:
    from pulumi_hosting.provider.provider_session import ProviderSession
    from pulumi_hosting.schema.fields import Type

Ask = Callable[[str, PropertyValues, pulumi.InvokeOptions | None], Any]
"""A way to ask: the lookup's name on the wire, its arguments as the wire has them, options."""


def lookup_function(name: str, *, native: bool) -> Callable[..., Any]:
    """The function ``get_…`` or ``get_…_output``. Raises ``AttributeError`` if no lookup has this name."""
    # A program that looks nothing up need not load what this takes.
    from pulumi_hosting.schema.lookups import LOOKUPS

    plain = name.removesuffix("_output")
    wire = camel(plain)
    if wire not in LOOKUPS or plain != LOOKUPS[wire].name:
        raise AttributeError(f"no lookup is named {name!r}")
    lookup = LOOKUPS[wire]
    parameters = [
        Parameter(item.name, Parameter.POSITIONAL_OR_KEYWORD)
        if item.required
        else Parameter(item.name, Parameter.KEYWORD_ONLY, default=None)
        for item in lookup.arguments
    ]
    options = [Parameter("opts", Parameter.KEYWORD_ONLY, default=None)] if native else []
    signature = Signature([*parameters, *options])

    def function(*args: Any, **kwargs: Any) -> Any:
        given = _named(name, signature, args, kwargs)
        opts = given.pop("opts", None)
        values = {camel(key): value for key, value in given.items() if value is not None}
        looked_up(name, values)
        # the mocks of a unit test answer as the plugin does
        now, later = (_invoke, _invoke_output) if native or mocked() else (_ask, _ask_output)
        ask: Ask = now if name == plain else later
        try:
            return ask(wire, values, opts)
        except pulumi.RunError as error:  # it is printed without a traceback
            raise pulumi.RunError(f"{program_line()}: {error}") from error.__cause__

    function.__name__ = function.__qualname__ = name
    function.__doc__ = lookup.description
    function.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it
    return function


def _named(function: str, signature: Signature, args: tuple[Any, ...], kwargs: PropertyValues) -> Props:
    """The arguments by name. Those that it does not take are refused, or reported and left out."""
    needed = [item.name for item in signature.parameters.values() if item.kind is not item.KEYWORD_ONLY]
    if len(args) > len(needed):
        takes = f"takes {len(needed) or 'no'} argument{'s' * (len(needed) != 1)} without a name"
        refuse(function, "", f"{takes}, and {len(args)} are given. Next: give the others by their names")
    given = dict(zip(needed, args, strict=False))
    if twice := sorted(given.keys() & kwargs.keys()):
        refuse(function, "", f"{', '.join(twice)} is given twice. Next: remove one of the two")
    given |= kwargs
    for wrong in refuse_names(function, "", given, signature.parameters, {name: [name] for name in needed}):
        del given[wrong]
    return given


# --- four ways to ask: by the program or the plugin, with arguments that are known now or later ------------


def _ask(name: str, args: PropertyValues, opts: pulumi.InvokeOptions | None = None) -> Any:
    from pulumi_hosting.client.exceptions import HostingError
    from pulumi_hosting.provider.lookup_tokens import call
    from pulumi_hosting.provider.stack_settings import SETTINGS

    config = pulumi.Config(NAME)
    session = _session()
    session.tells(pulumi.log.info)
    try:
        session.configure({setting: config.get(setting) for setting in SETTINGS})
        found = call(session.client, name, args)
    except HostingError as error:
        raise pulumi.RunError(str(error)) from error
    return _typed(name, found)


def _ask_output(
    name: str, args: PropertyValues, opts: pulumi.InvokeOptions | None = None
) -> pulumi.Output[Any]:
    from pulumi_hosting.schema.lookups import LOOKUPS

    # In a thread: waiting for the answer would stop the whole program.
    output: pulumi.Output[Any] = pulumi.Output.from_input(args).apply(
        lambda known: asyncio.to_thread(_ask, name, known)
    )
    return pulumi.Output.secret(output) if LOOKUPS[name].has_secrets else output


def _invoke(name: str, args: PropertyValues, opts: pulumi.InvokeOptions | None) -> Any:
    try:
        found = pulumi.runtime.invoke(token(name), dict(args), _options(opts)).value
    except Exception as error:
        if mocked():  # an error of the test itself
            raise
        # the SDK raises nothing more special for what a plugin refuses
        raise pulumi.RunError(str(error)) from None
    return _typed(name, found)


def _invoke_output(name: str, args: PropertyValues, opts: pulumi.InvokeOptions | None) -> pulumi.Output[Any]:
    found: pulumi.Output[Any] = pulumi.runtime.invoke_output(token(name), dict(args), _options(opts))
    return found.apply(partial(_typed, name))


# --- parts --------------------------------------------------------------------------------------------------


def _typed(name: str, found: PropertyValues) -> Any:
    """An answer of the wire in the classes of :mod:`pulumi_hosting.provider.sdk.results`."""
    from pulumi_hosting.schema.lookups import LOOKUPS

    lookup = LOOKUPS[name]
    key = lookup.single and camel(lookup.single)
    if key is not None and key not in found:
        raise pulumi.RunError(
            f"{lookup.name}: the answer has no {key!r}. Next: return {{{key!r}: …}} from call"
        )
    value = found if key is None else found[key]
    return rpc.translate_output_properties(
        value, lambda key: key, _python_type(lookup.value), transform_using_type_metadata=True
    )


def _python_type(type: "Type") -> Any:
    import pulumi_hosting.provider.sdk.results as results
    from pulumi_hosting.schema.fields import type_name

    if type.model is not None:
        return getattr(results, type_name(type.model))
    if type.kind == "array" and type.of is not None:
        return list[_python_type(type.of)]  # type: ignore[misc]  # a type that is made at run time
    return {"string": str, "map": Props}[type.kind]


@cache
def _session() -> "ProviderSession":
    from pulumi_hosting.provider.provider_session import ProviderSession

    return ProviderSession()


def _options(opts: pulumi.InvokeOptions | None) -> pulumi.InvokeOptions:
    merged: pulumi.InvokeOptions = pulumi.InvokeOptions.merge(pulumi.InvokeOptions(version=version()), opts)
    return merged
