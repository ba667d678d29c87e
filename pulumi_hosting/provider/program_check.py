"""Runs a Pulumi program once and checks every resource of ours that it declares, as a preview does before it
asks the account. Mocks stand in for the engine: outputs are unknown, and nothing is sent.
"""

import runpy
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any

import pulumi
from pulumi.runtime import mocks
from pulumi.runtime.rpc import UNKNOWN

from pulumi_hosting.client.call_errors import with_next_step
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import HostingError, InvalidInput
from pulumi_hosting.planning.check import check_others, unsendable
from pulumi_hosting.provider import lookup_tokens, names
from pulumi_hosting.provider.conversion import field_of, from_pulumi, snake, wrong_wait_timeout
from pulumi_hosting.provider.declaration_mistakes import SourceLine, program_line, watched
from pulumi_hosting.provider.mistake import Mistake, like
from pulumi_hosting.provider.names import PropertyValues, Props, camel, class_of, token
from pulumi_hosting.provider.plugin.marshal import unmarshal
from pulumi_hosting.provider.resource_base import Declaration
from pulumi_hosting.provider.resource_shape import inputs_of
from pulumi_hosting.provider.stack_settings import failures_of
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.schema.fields import Type, fields
from pulumi_hosting.schema.lookups import LOOKUPS

_KINDS = {name: kind for kind in RESOURCES for name in (token(class_of(kind)), names.dynamic_token(kind))}
_PROVIDER = f"pulumi:providers:{names.NAME}"
_PLAIN: PropertyValues = {"string": "1", "integer": 1, "number": 1.0, "boolean": True, "any": None}
_ONE_LETTER = 0.9
"""How like one letter more, less or other leaves two event types."""


@dataclass(slots=True)
class _Declared:
    """A declaration, in the order of the program. ``reported``: fields that need no further word.
    ``is_checked``: whether it was registered.
    """

    number: int
    type: str
    name: str
    place: SourceLine
    reported: set[str] = field(default_factory=set)
    is_checked: bool = False

    def is_on(self, lines: Collection[tuple[str, int]]) -> bool:
        return (Path(self.place.file).absolute().as_uri(), self.place.line) in lines


class Findings:
    """What was declared and what is wrong with it: the watcher of the program's declarations.

    ``not_run``: why the program could not be run: it has a syntax error, lacks a module or ends its process.
    ``client``: asks what stands in for the account.
    """

    def __init__(self, client: Client) -> None:
        self.found: list[tuple[int, Mistake]] = []
        self.not_run = ""
        self._client = client
        self._numbers = count(1)
        self._declared: list[_Declared] = []
        self._urns: dict[tuple[str, str, str], list[_Declared]] = defaultdict(list)

    @property
    def resources(self) -> int:
        return len(self._declared)

    def declared(self, type: str, name: str, place: SourceLine) -> None:
        self._declared.append(_Declared(next(self._numbers), type, name, place))

    def looked_up(self, function: str, args: PropertyValues, place: SourceLine) -> None:
        if any(isinstance(value, pulumi.Output) for value in args.values()):
            return
        try:
            lookup_tokens.call(self._client, camel(function.removesuffix("_output")), args)
        except InvalidInput as error:
            for name, reason in ((snake(key), why) for key, why in error.fields.items() if key in args):
                text = with_next_step(f"{name}: {reason}", [name])
                self._tell(_Declared(next(self._numbers), function, "", place), text)
        except HostingError:
            pass  # only the real account has what it asks for

    def mistake(self, type: str, name: str, place: SourceLine, text: str, fields: Collection[str]) -> None:
        one = _Declared(next(self._numbers), type, name, place)
        if self._declared and (self._declared[-1].type, self._declared[-1].name) == (type, name):
            self._declared[-1].reported.update(fields)
            one.number = self._declared[-1].number
        self._tell(one, text)

    def misspelled(self, text: str, place: SourceLine) -> None:
        """A name of ours that is not there. ``place``: where the program says it."""
        mistake = Mistake(place.file, place.line, "", "", text)
        if not self.found or self.found[-1][1] != mistake:  # an import asks twice
            self.found.append((next(self._numbers), mistake))

    def registered(self, type: str, request: Any) -> Collection[str]:
        """Check a resource as it was registered, and name its wrong fields. Registrations come some time
        after their declarations, in any order.
        """
        values = unmarshal(request.object).values
        one = self._declaration(type, request)
        self._urns[request.parent, request.type, request.name].append(one)
        failures = self._failures(request.type, values, is_imported=bool(request.importId))
        for name, reason in failures.items():
            if name not in one.reported:
                self._tell(one, with_next_step(f"{name}: {reason}" if name else reason, [name]))
        if {"tariff", "tariff_id"} <= {field_of(key) for key, value in values.items() if value is not None}:
            # which id the name has is known to the account alone
            self._tell(one, "give either tariff or tariff_id, not both. Next: remove one of the two")
        return failures.keys()

    def ended(self, error: BaseException, directory: Path) -> None:
        """The program raised, so what follows was not run."""
        place = _place_of(error, directory)
        what = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())
        # the SDK's text goes on with a command for a stack that is not there
        what, missing, _ = what.partition(" please set a value")
        shown = what if isinstance(error, pulumi.RunError) else f"{type(error).__name__}: {what}".rstrip(": ")
        next_step = ". Next: give it with --config KEY=VALUE or --stack" if missing else ""
        if next_step_to_run := _to_run(error):
            self.not_run = f"{place}: {shown}. Next: {next_step_to_run}"
        text = f"the program ends here, and what follows was not checked: {shown}{next_step}"
        self._tell(_Declared(next(self._numbers), "", "", place), text)

    def mistakes(self) -> list[Mistake]:
        """In the order of the program's declarations. Called once."""
        for same in self._urns.values():
            first, *others = sorted(same, key=lambda one: one.number)
            for one in others:
                at = f"is declared at {first.place} already"
                self._tell(one, f"a resource of this name {at}. Next: give it another name")
        return [mistake for _, mistake in sorted(self.found, key=lambda item: item[0])]

    def _tell(self, one: _Declared, text: str) -> None:
        self.found.append((one.number, Mistake(one.place.file, one.place.line, one.type, one.name, text)))

    def _declaration(self, type: str, request: Any) -> _Declared:
        """Of several with one name the one on the line that registered it; on one line, in turn."""
        lines = {(frame.pc.uri, frame.pc.line) for frame in request.stackTrace.frames}
        same = [one for one in self._declared if (one.type, one.name) == (type, request.name)]
        same.sort(key=lambda one: (one.is_checked, not one.is_on(lines), one.number))
        one = same[0] if same else _Declared(0, type, request.name, SourceLine("?", 0))
        one.is_checked = True
        return one

    def _failures(self, type: str, values: PropertyValues, *, is_imported: bool) -> dict[str, str]:
        """Field → reason, all of them: what is wrong in one field keeps no other from being checked."""
        if type == _PROVIDER:
            return {snake(name): reason for name, reason in failures_of(values).items()}
        resource = RESOURCES[_KINDS[type]]
        raw, unknown = from_pulumi(values)
        failures: dict[str, str] = {}
        while (found := check_others(resource, raw, unknown, failures).failures).keys() - failures:
            failures.update(found)
        failures |= wrong_wait_timeout(values)
        is_sent = not (is_imported or resource.Inputs.adopted_by(raw))
        failures = unsendable(resource, raw if is_sent else {}) | failures
        if _KINDS[type] == "webhook_subscription" and "events" not in failures:
            failures.update(self._misspelled_event(raw.get("events") or ()))
        choices = {field.name: field.type.choices for field in inputs_of(resource)}
        return {name: _worded(why, raw.get(name), choices.get(name, ())) for name, why in failures.items()}

    def _misspelled_event(self, given: Iterable[str]) -> dict[str, str]:
        """The reason of an event type that is one letter off a known one. Of other names the service alone
        knows whether it has them: it may have more types.
        """
        rows = _found(self._client, "getWebhookEvents", {})["webhookEvents"]
        known = [row["type"] for row in rows]
        for event in given:
            meant = None if event in (*known, "*") else like(event, known, _ONE_LETTER)
            if meant and abs(len(meant) - len(event)) <= 1:
                return {"events": f"there is no event {event!r} (did you mean {meant}?)"}
        return {}


def _worded(reason: str, given: Any, choices: Collection[object]) -> str:
    """The reason; if few texts are allowed, what was given and which is like it."""
    if not choices or not isinstance(given, str) or ", and is " in reason:
        return reason
    meant = like(given, [choice for choice in choices if isinstance(choice, str)])
    return f"{reason}, and is {given!r}" + (f" (did you mean {meant}?)" if meant else "")


def _to_run(error: BaseException) -> str:
    """What to do if the program could not be run; empty if it ran and raised."""
    if isinstance(error, SyntaxError):
        return "correct the line"
    if isinstance(error, ImportError):
        return "install what is missing for the program's Python, or correct the import"
    return "let the program end without sys.exit" if isinstance(error, SystemExit) else ""


def _place_of(error: BaseException, directory: Path) -> SourceLine:
    """The innermost line of the program itself that an error passed; of a syntax error, its own line."""
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_relative_to(directory):
        return SourceLine(str(Path(error.filename).relative_to(directory)), error.lineno or 0)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(directory) and "site-packages" not in frame.filename
    ]
    if not frames:
        return SourceLine(directory.name, 0)
    return SourceLine(str(Path(frames[-1].filename).relative_to(directory)), frames[-1].lineno or 0)


class _Mocks(mocks.Mocks):
    """Every output of a resource is unknown, as in a preview."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, Props]:
        return args.resource_id or "", args.inputs

    def call(self, args: mocks.MockCallArgs) -> Any:
        return _found(self._client, args.token, args.args) if args.token.startswith(f"{names.NAME}:") else {}


def _found(client: Client, token: str, args: PropertyValues) -> Props:
    """What a lookup finds; values that mean nothing of what only the real account has, and for a wrong
    argument."""
    try:
        return lookup_tokens.call(client, token, args)
    except HostingError:
        lookup = LOOKUPS[token.rpartition(":")[2]]
        value: Props = _stand_in(lookup.value)
        return value if lookup.single is None else {camel(lookup.single): value}


def _stand_in(type: Type) -> Any:
    """Some value of a type; a text that reads as a number too, since amounts are texts."""
    if type.model is not None:
        return {field.wire: _stand_in(field.type) for field in fields(type.model)}
    if type.of is not None:
        return {} if type.kind == "map" else [_stand_in(type.of)]
    return _PLAIN[type.kind]


class _Monitor(mocks.MockMonitor):
    """Hands every registration of ours to ``findings``, with what is unknown in it."""

    def __init__(self, findings: Findings, client: Client) -> None:
        super().__init__(_Mocks(client))
        self._findings = findings
        self._lock = Lock()  # the SDK registers from several threads

    def RegisterResource(self, request: Any) -> Any:
        kind = _KINDS.get(request.type)
        wrong: Collection[str] = ()
        if kind is not None or request.type == _PROVIDER:
            with self._lock:
                wrong = self._findings.registered(class_of(kind) if kind else "Provider", request)
        answer = super().RegisterResource(request)  # type: ignore[no-untyped-call]  # the SDK's has no types
        # the SDK refuses outputs of a wrong type, and the program would end by what is reported already
        answer.object.update({name: UNKNOWN for name in request.object if snake(name) in wrong})
        return answer


def run(order: PropertyValues, client: Client, modules: Iterable[ModuleType]) -> Findings:
    """Run the program of ``order`` in this process and check what it declares.

    ``order``: ``program``, ``directory``, ``project``, ``stack``, ``config`` and the keys of its ``secrets``.
    ``client``: asks what stands in for the account; ``modules``: those of ours that programs import.
    """
    findings = Findings(client)
    directory = Path(order["directory"])
    sys.path.insert(0, str(directory))
    sys.argv = [order["program"]]
    sys.dont_write_bytecode = True
    pulumi.runtime.set_all_config(order["config"], order["secrets"])
    monitor = _Monitor(findings, client)
    mocks.set_mocks(monitor.mocks, order["project"], order["stack"], preview=True, monitor=monitor)
    with watched(findings), misspelled_names(findings.misspelled, modules, directory):
        try:
            mocks.test(lambda: runpy.run_path(order["program"], run_name="__main__"))()  # type: ignore[no-untyped-call]  # the SDK's has no types
        except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever the program raises is its mistake
            if not (isinstance(error, SystemExit) and error.code in (None, 0)):
                findings.ended(error, directory)
    return findings


# --- names of ours that a program misspells


Tell = Callable[[str, SourceLine], None]


@contextmanager
def misspelled_names(tell: Tell, modules: Iterable[ModuleType], directory: Path) -> Iterator[None]:
    """Within, ``tell`` takes what is wrong and where the program says it, and what is meant stands in for it,
    so that the check goes on.

    ``modules``: whose names are reported, beside the outputs of resources; ``directory``: the program's.
    """
    finds = {module: module.__getattr__ for module in modules}
    for module, find in finds.items():
        vars(module)["__getattr__"] = partial(_of_module, tell, module, find)
    type.__setattr__(Declaration, "__getattr__", _output_of(tell, directory))
    try:
        yield
    finally:
        for module, find in finds.items():
            vars(module)["__getattr__"] = find
        type.__delattr__(Declaration, "__getattr__")


def _of_module(tell: Tell, module: ModuleType, find: Callable[[str], Any], name: str) -> Any:
    try:
        return find(name)
    except AttributeError:
        meant = None if name.startswith("_") else like(name, find("__all__"))
        if meant is None or (Path(__file__).parents[1] / name).exists():
            raise
        tell(_text(module.__name__, name, meant), program_line())
        return find(meant)


def _output_of(tell: Tell, directory: Path) -> Callable[[Declaration, str], Any]:
    def output(self: Declaration, name: str) -> Any:
        meant = None if name.startswith("_") else like(name, [*self._outputs.values(), "id", "urn"])
        file = Path(sys._getframe(1).f_code.co_filename)
        if (
            meant is None
            or name == meant
            or not file.is_relative_to(directory)
            or "site-packages" in file.parts
        ):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        tell(_text(type(self).__name__, name, meant), program_line())
        return getattr(self, meant)

    return output


def _text(owner: str, name: str, meant: str) -> str:
    return f"{owner} has no {name!r} (did you mean {meant}?). Next: write {meant} in place of {name}"
