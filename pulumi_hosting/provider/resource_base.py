"""What dynamic and native resource classes have in common, and what each adds, and what registers a
provider. The classes themselves are generated.

A class has its resource's fields in Python's names; Pulumi's wire has them in camelCase, so that a stack of
one form fits the other.
"""

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial, wraps
from typing import Any, ClassVar, ParamSpec, Self, get_overloads, overload

import pulumi
from pulumi.dynamic import Resource

from pulumi_hosting.provider import declaration_mistakes as mistakes
from pulumi_hosting.provider import final_options, names
from pulumi_hosting.provider.dynamic import PROVIDERS, timeouts_of
from pulumi_hosting.provider.final_options import mocked
from pulumi_hosting.provider.interruption import explain_interrupts
from pulumi_hosting.provider.names import PropertyValues, Props, camel, class_of, token
from pulumi_hosting.provider.version import version

_Form = tuple[Callable[[str, Props, pulumi.ResourceOptions], None], pulumi.ResourceOptions, Mapping[str, str]]

_untrack: Callable[[pulumi.Output[Any]], None] | None = getattr(pulumi.Output, "_untrack", None)
"""Take an output from those that the end of the program waits for. Older SDKs have none."""


class _Field(str):
    """The name of a field. It is translated for the wire; the keys of a user's own map, which are plain
    text, are not.
    """

    __slots__ = ()


class Declaration:
    """A declared resource. ``_kind`` names it; what else there is to know of it is written into its class, so
    that a program need load neither the resources nor the API's models."""

    _args: ClassVar[type]
    """The class that holds all inputs as one object."""
    _kind: ClassVar[str]
    _inputs: ClassVar[tuple[str, ...]]
    _needed: ClassVar[tuple[str, ...]]
    _named_by: ClassVar[Mapping[str, str]] = {}
    """Input → the input that may name its value instead."""
    _secrets: ClassVar[tuple[str, ...]]
    _default_name: ClassVar[bool]
    _plugin_names: ClassVar[bool] = False
    """Whether the plugin may give another default name, since it knows ``pulumi:autonaming``."""
    _is_of_a_server: ClassVar[bool] = False
    """Whether it takes ``server``, and goes when that goes."""
    _early_deletion: ClassVar[str] = ""
    """What a person should know if it may be deleted before its server."""
    _label: str | None = None
    """What tells it from the other declarations, as a provider does: the identity that it declares, else its
    URN."""
    _server: pulumi.Input[str] | None = None
    """The ``_label`` of the server that it is declared with."""
    _stays: bool = False
    """Whether its declaration says that the engine does not delete the object. If the engine shows the final
    options, those decide: see ``final_options``."""
    _delete_before_replace: ClassVar[bool]
    """Whether its natural key is unique on the account, so that two cannot be there at once."""
    _outputs: ClassVar[Mapping[str, str]]
    """Names of the outputs by their names on the wire."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # The SDK finds types of outputs, and their names on the wire, on the class itself only, not on those
        # it derives from.
        outputs = {
            name: hint
            for base in reversed(cls.__mro__)
            if issubclass(base, Declaration)
            for name, hint in inspect.get_annotations(base).items()
            if getattr(hint, "__origin__", None) is pulumi.Output
        }
        cls.__annotations__ = {**inspect.get_annotations(cls), **outputs}
        for name in outputs:
            setattr(cls, name, pulumi.property(camel(name)))
        cls._outputs = {camel(name): name for name in outputs}
        if "_args" in vars(cls):
            init = vars(cls)["__init__"]
            init.__signature__ = _signature(init, cls._args)
            overloads = get_overloads(init)
            for function in (init, *overloads):
                function.__qualname__ = f"{class_of(cls._kind)}.__init__"  # in Python's own errors of a call
            for function in overloads:
                overload(function)  # they are found by that name

    @classmethod
    def get(
        cls, resource_name: str, id: pulumi.Input[str], opts: pulumi.ResourceOptions | None = None
    ) -> Self:
        """The object with this id, looked up, not declared: it is read in every run, and never changed or
        deleted.

        :param resource_name: Name in the stack.
        :param id: Its id on the account.
        """
        found = cls.__new__(cls)
        found._stays = True
        opts = _merged(pulumi.ResourceOptions(id=id), opts)
        register, ours, _ = found._form(resource_name, opts)
        register(resource_name, found._nothing(), _merged(ours, opts))
        found._wait_for_id_alone()
        return found

    def _declare(
        self, resource_name: str, args: Any, inputs: PropertyValues, opts: pulumi.ResourceOptions | None
    ) -> None:
        """Make it of ``args`` or of keywords."""
        mistakes.declared(class_of(self._kind), resource_name)
        explain_interrupts()
        is_known = True
        if args is not None and inputs:
            self._refuse(resource_name, "give either args or keywords, not both")
        if args is not None and not isinstance(args, self._args):
            wanted = f"args must be {self._args.__name__}, and is {type(args).__name__}"
            self._refuse(resource_name, f"{wanted}. Next: give keywords, and options as opts=…", self._inputs)
            args, is_known = None, False
        written = inputs if args is None else vars(args)
        given = {name: value for name, value in written.items() if value is not None}
        unnamed: Props = {}
        if self._default_name and "name" not in given:
            given["name"] = resource_name
            unnamed = {names.UNNAMED: True} if self._plugin_names and not mocked() else {}
        warning = None
        if self._is_of_a_server and is_known:
            opts, warning = self._with_its_server(resource_name, given, opts)
        if is_known:
            self._check_arguments(resource_name, given)
            _set_lists_apart(given)
        is_watched = final_options.watch()
        if opts is not None:
            stays = bool(opts.protect or opts.retain_on_delete) and not is_watched
            self._stays = stays or opts.id is not None
        secret = {name: pulumi.Output.secret(given[name]) for name in self._secrets if name in given}
        props = self._nothing() | {_Field(name): value for name, value in (given | secret).items()}
        for path in (opts.ignore_changes if opts else None) or ():
            if re.match(r"\w+\[\d", path):
                self._refuse(
                    resource_name,
                    f"ignore_changes has {path!r}, and the recorded list may be in another order. Next: "
                    f"ignore the whole list, {path.partition('[')[0]!r}",
                )
        # Also for a replacement on demand (--target-replace), for which an engine asks for no difference. The
        # program's own option wins.
        ours = pulumi.ResourceOptions(delete_before_replace=self._delete_before_replace or None)
        opts = _merged(ours, opts)
        register, form, beside = self._form(resource_name, opts)
        told: Props = {} if self._server is None or mocked() else {names.SERVER: self._server}
        own = {*vars(self)}  # what a subclass set before it came here
        register(
            resource_name,
            {**props, **unnamed, **told, **(beside if opts.id is None else {})},
            _merged(form, opts),
        )
        self._wait_for_id_alone(own)
        if warning is not None:
            pulumi.log.warn(warning, resource=self)  # type: ignore[arg-type]  # every form is a resource

    def _with_its_server(
        self, resource_name: str, given: Props, opts: pulumi.ResourceOptions | None
    ) -> tuple[pulumi.ResourceOptions | None, str | None]:
        """Turn ``server`` into ``server_id`` and the option ``deleted_with``; a warning if neither is
        there. A server that the engine does not delete takes nothing with it."""
        server = given.pop("server", None)
        refuse = partial(self._refuse, resource_name, fields=["server_id"])
        if server is None and "server_id" not in given:
            refuse("missing argument 'server', or 'server_id'. Next: give server")
        elif server is None:
            # An id that is written out is no server of this program, so no order of deletions follows from
            # it.
            is_of_program = isinstance(given["server_id"], pulumi.Output)
            if is_of_program and (opts is None or opts.deleted_with is None):
                return opts, (
                    f"{self._early_deletion}. Next: declare it with server=… in place of server_id; "
                    'Server.get("NAME", id) is a server of another stack'
                )
        else:
            if "server_id" in given:
                refuse("give either server or server_id, not both")
            is_ours = isinstance(server, Declaration) and isinstance(server, pulumi.CustomResource)
            if is_ours and server._kind == "server":
                given["server_id"] = server.id
                self._server = server._label or server.urn
                if not server._stays:
                    opts = _merged(pulumi.ResourceOptions(deleted_with=server), opts)
            else:
                refuse(
                    f"server must be a Server, and this is a {type(server).__name__}. Next: give server_id"
                )
        return opts, None

    def _form(self, resource_name: str, opts: pulumi.ResourceOptions) -> _Form:
        """What the form adds: how it is registered with the engine, its own options, and properties of a
        new resource.
        """
        raise NotImplementedError  # each form has its own

    def _nothing(self) -> Props:
        # What is not among the properties, though absent, would not be an attribute afterwards.
        return {_Field(name): None for name in self._outputs.values()}

    def _wait_for_id_alone(self, own: Collection[str] = ()) -> None:
        """Have the program wait for the id and the URN, which come together with all other outputs, and for
        its ``own`` attributes. Whenever one output is there, the SDK looks at all that it waits for: 38,000
        in a program of 1,000 servers.
        """
        if _untrack is not None:
            for name, value in vars(self).items():
                if isinstance(value, pulumi.Output) and name not in ("id", "urn", *own):
                    _untrack(value)

    def _refuse(self, resource_name: str, text: str, fields: Collection[str] = ()) -> None:
        """Raise with the resource and the program's line, or report it if a program is only checked."""
        mistakes.refuse(class_of(self._kind), resource_name, text, fields)

    def _check_arguments(self, resource_name: str, given: Props) -> None:
        """Refuse those that it does not take, and say which are missing."""
        valid = [*self._inputs, *(["server"] if self._is_of_a_server else [])]
        needed = {name: [*filter(None, (name, self._named_by.get(name)))] for name in self._needed}
        for name in mistakes.refuse_names(class_of(self._kind), resource_name, given, valid, needed):
            del given[name]

    def translate_input_property(self, prop: str) -> str:
        return camel(prop) if isinstance(prop, _Field) else prop

    def translate_output_property(self, prop: str) -> str:
        return self._outputs.get(prop, prop)


class Dynamic(Declaration, Resource):
    """A dynamic resource, served by this package in the program's own Python. It takes over native
    resources.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(module=names.NAME, name=class_of(cls._kind), **options)

    def _form(self, resource_name: str, opts: pulumi.ResourceOptions) -> _Form:
        ours = pulumi.ResourceOptions(
            additional_secret_outputs=[*self._secrets],
            aliases=[pulumi.Alias(type_=token(class_of(self._kind)))],
        )
        timeouts = self._timeouts(resource_name, opts)
        if mocked():  # a unit test sees the program's own inputs, and no others
            return partial(pulumi.CustomResource.__init__, self, names.dynamic_token(self._kind)), ours, {}
        self._label = _identity(self._kind, resource_name, opts)
        beside = {names.IDENTITY: self._label, **_organization(), **timeouts}
        beside |= {} if pulumi.runtime.is_dry_run() else {names.APPLIES: True}
        return partial(Resource.__init__, self, PROVIDERS[self._kind]()), ours, beside

    def _timeouts(self, resource_name: str, opts: pulumi.ResourceOptions) -> Props:
        try:
            found = timeouts_of(opts)
        except ValueError as error:
            self._refuse(resource_name, f"custom_timeouts: {error}")
            return {}
        return {names.TIMEOUTS: found} if found else {}


class Native(Declaration, pulumi.CustomResource):
    """A resource of the native provider ``pulumi-resource-hosting``. It takes over dynamic resources."""

    _plugin_names = True

    def _form(self, resource_name: str, opts: pulumi.ResourceOptions) -> _Form:
        ours = pulumi.ResourceOptions(
            version=version(),
            additional_secret_outputs=[*self._secrets],
            aliases=[pulumi.Alias(type_=names.dynamic_token(self._kind))],
        )
        register = partial(pulumi.CustomResource.__init__, self, token(class_of(self._kind)))
        return register, ours, {} if mocked() else _organization()


P = ParamSpec("P")


def names_checked(init: Callable[P, None]) -> Callable[P, None]:
    """A constructor that refuses a wrong argument with one line, as those of the resources do."""
    parameters = inspect.signature(init).parameters.values()
    valid = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]

    @wraps(init)
    def checked(*args: P.args, **kwargs: P.kwargs) -> None:
        name = kwargs.get("resource_name", args[1] if args[1:] else "")
        for wrong in mistakes.refuse_names(
            "Provider", str(name), [key for key in kwargs if key != "resource_name"], valid, {}
        ):
            del kwargs[wrong]
        init(*args, **kwargs)

    return checked


def registration_of(
    resource_name: str, settings: Props, opts: pulumi.ResourceOptions | None
) -> tuple[str, str, Props, pulumi.ResourceOptions]:
    """What the SDK is given for a ``Provider`` with these settings."""
    mistakes.declared("Provider", resource_name)
    return names.NAME, resource_name, settings, _merged(pulumi.ResourceOptions(version=version()), opts)


# --- parts -------------------------------------------------------------------------------------------------


def _signature(function: Callable[..., None], args: type) -> inspect.Signature:
    """What ``inspect`` and notebooks show of a constructor: every argument by its name and type."""
    head = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    keywords = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
        for name, hint in inspect.get_annotations(args).items()
    ]
    return inspect.Signature([*head, *keywords], return_annotation=None)


def _merged(ours: pulumi.ResourceOptions, theirs: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions:
    """A copy with both, theirs first, the fields in them named as on the wire."""
    merged = pulumi.ResourceOptions.merge(ours, theirs)
    for option in ("ignore_changes", "replace_on_changes", "additional_secret_outputs", "hide_diffs"):
        if paths := getattr(merged, option):
            setattr(merged, option, [_path(path) for path in paths])
    return merged


def _path(path: str) -> str:
    """``custom_fields.data_center`` → ``customFields.data_center``."""
    field, *rest = re.split(r"(?=[.[])", path, maxsplit=1)
    return camel(field) + "".join(rest)


def _organization() -> dict[str, str]:
    """The organization that the stack is in. A backend of one's own has none, which Pulumi calls
    ``organization``.
    """
    name = pulumi.get_organization()
    return {} if name in ("", "organization") else {names.ORGANIZATION: name}


def _set_lists_apart(given: Props) -> None:
    """Where one value or several may be given, several get a name that no output has: the SDK would take them
    for the output as long as that is not known, which is the one that was taken.
    """
    for one, several in names.SEVERAL.items():
        value = given.get(one)
        if isinstance(value, list | tuple):
            given[several] = given.pop(one)
        elif isinstance(value, pulumi.Output):
            given[one] = value.apply(lambda found: None if isinstance(found, list) else found)
            given[several] = value.apply(lambda found: found if isinstance(found, list) else None)


def _identity(kind: str, resource_name: str, opts: pulumi.ResourceOptions | None) -> str:
    """What names the declaration: project, stack, type, the name, and the parent's name if it has one."""
    parent = opts.parent if opts else None
    family = f"{parent.pulumi_resource_type}:{parent.pulumi_resource_name}/" if parent is not None else ""
    return f"pulumi:{pulumi.get_project()}/{pulumi.get_stack()}/{kind}/{family}{resource_name}"
