"""Follows one value through our functions, from the user's line to the request that carries it to the API.

- A **hop** is a distinct function of ours, generated ones included, whose frame holds the value and passes it
  on: it is waiting for its callee when the value leaves (to the SDK, to the network), or returns the value to
  a hop. The frame holds what is in a local variable, or inside of a container, model, object of ours, closure
  or bytes in one. A comprehension belongs to the function around it.
- A **change** is our code putting the value into another type: text or number, dictionary, a model of its own
  class, JSON. Passing a dictionary on as arguments is none; making a dictionary of arguments is one. Each
  occurrence counts.
- A **reader** is any other function of ours that holds the value: a check, a price, a search for an existing
  server, a title.

``sys.setprofile`` sees every call. The functions of SDKs, engines and libraries are passed over, and so is
the emulator.
"""

import dataclasses
import functools
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CellType, CodeType, FrameType, FunctionType, MappingProxyType
from typing import Any, NamedTuple

import httpx
from pydantic import BaseModel

from pulumi_hosting.api.models import Response

OURS = re.compile(r"/(pulumi_hosting/(?!emulator/)|ansible_collections/hosting/).*\.py$")
COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
DEPTH = 8
"""How deep a container is looked into: a request holds the functions that were given with it, and these hold
the options of the task."""
CONTAINERS = (int, float, str, bytes, dict, list, tuple, set, frozenset, BaseModel)
JSON = "JSON"  # text or bytes that contain the value


class Form(NamedTuple):
    """How the value is held: as ``leaf`` (int, float, str, JSON), bare or in a ``holder`` (dict, a model's
    class).
    """

    holder: str
    leaf: str

    def __str__(self) -> str:
        if not self.holder:
            return self.leaf
        return f"dict of {self.leaf}" if self.holder == "dict" else self.holder


def is_ours(code: CodeType) -> bool:
    """Whether it is a function of ours; a comprehension belongs to the function around it."""
    return code.co_name not in COMPREHENSIONS and OURS.search(code.co_filename) is not None


def name_of(code: CodeType) -> str:
    """The function, as ``folder/file.py Class.function``."""
    path = re.sub(r"^.*/(pulumi_hosting|ansible_collections/hosting/cloud/plugins)/", "", code.co_filename)
    return f"{path} {code.co_qualname}"


@dataclass(slots=True, eq=False)
class Node:
    """One call of a function of ours. ``known``: the forms of the value that it was given, or made;
    ``returns``: whether it returned the value; ``sends``: whether the value left the process, or went to the
    SDK, beneath it."""

    code: CodeType
    parent: "Node | None"
    frame: FrameType | None
    known: set[Form]
    holds: bool
    returns: bool = False
    sends: bool = False
    made: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return name_of(self.code)


@dataclass(frozen=True, slots=True)
class Hop:
    """A function on the way; ``changes`` as ``dict → ServerInputs``, in the order of the walk, over all its
    calls.
    """

    name: str
    changes: list[str]

    def counted(self) -> Counter[str]:
        """How often it makes each change."""
        return Counter(self.changes)


@dataclass(frozen=True, slots=True)
class Walk:
    """A whole walk. ``readers``: the functions that hold the value and do not pass it on."""

    hops: list[Hop]
    readers: list[str]

    @property
    def changes(self) -> int:
        return sum(len(hop.changes) for hop in self.hops)


class Tracer:
    """Records the calls that hold ``number``, which should occur nowhere else.

    ``answered``: it comes from the API, so what the API answered is looked into.
    """

    def __init__(self, number: int, *, answered: bool = False) -> None:
        self._number = number
        self._answered = answered
        self._text, self._bytes = str(number), str(number).encode()
        self._nodes: list[Node] = []
        self._stacks = threading.local()
        self._over = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Follow the calls of this thread and of those that begin within."""
        self._stacks.now = []
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def leaves(self, *, last: bool) -> None:
        """The value leaves our code: to an SDK, or (``last``) to the API, which ends the walk."""
        for node in self._stack():
            if node.frame is not None:
                self._look(node, node.frame)
            node.sends = True
        self._over = self._over or last

    def walk(self) -> Walk:
        """What was seen. Raises ``RuntimeError`` where the last request never left."""
        if not self._over:
            raise RuntimeError("the request that was to carry the value was never sent")
        hops: dict[str, Hop] = {}
        readers: dict[str, None] = {}
        on_the_way: set[Node] = set()
        for node in filter(lambda node: node.holds, self._nodes):
            if node.sends or (node.returns and (node.parent is None or node.parent in on_the_way)):
                on_the_way.add(node)
                hops.setdefault(node.name, Hop(node.name, [])).changes.extend(node.made)
            else:
                readers[node.name] = None
        return Walk([*hops.values()], [name for name in readers if name not in hops])

    # --- recording

    def _stack(self) -> list[Node]:
        if not hasattr(self._stacks, "now"):
            self._stacks.now = []
        stack: list[Node] = self._stacks.now
        return stack

    def _profile(self, frame: FrameType, event: str, result: Any) -> None:
        if self._over or event not in ("call", "return") or not is_ours(frame.f_code):
            return
        stack = self._stack()
        if event == "call":
            self._enter(stack, frame)
        elif stack and stack[-1].frame is frame:
            self._leave(stack.pop(), frame, result)

    def _enter(self, stack: list[Node], frame: FrameType) -> None:
        parent = stack[-1] if stack else None
        forms = self.forms(frame.f_locals)
        node = Node(frame.f_code, parent, frame, forms, bool(forms))
        if parent is not None:
            self._made(parent, forms)
        stack.append(node)
        self._nodes.append(node)

    def _leave(self, node: Node, frame: FrameType, result: Any) -> None:
        self._look(node, frame)
        node.frame = None
        # of an SDK's result
        attributes = {} if isinstance(result, BaseModel) else getattr(result, "__dict__", {})
        forms = self.forms({"": result, **attributes})
        node.returns = bool(forms)
        node.holds = node.holds or node.returns
        self._made(node, forms)
        if node.parent is not None:
            node.parent.known |= forms

    def _look(self, node: Node, frame: FrameType) -> None:
        node.holds = node.holds or bool(self.forms(frame.f_locals))

    @staticmethod
    def _made(node: Node, forms: set[Form]) -> None:
        """Note the forms that the node did not know before: it made them. Taking the value out of a form
        makes none.
        """
        leaves = {form.leaf for form in node.known}
        new = {form for form in forms - node.known if form.holder or form.leaf not in leaves}
        if new and node.known:
            node.made.append(f"{_listed(node.known)} → {_listed(new)}")
        node.known |= forms

    # --- where the value is

    def forms(self, variables: Mapping[str, Any]) -> set[Form]:
        """The forms in which these variables hold the value."""
        found: set[Form] = set()
        for value in variables.values():
            self._search(value, "", DEPTH, found, set())
        return found

    def _search(self, value: Any, holder: str, depth: int, found: set[Form], seen: set[int]) -> None:
        if (leaf := self._leaf(value)) is not None:
            found.add(Form("" if leaf == JSON else holder, leaf))  # JSON is JSON wherever it is
        elif depth and id(value) not in seen:
            seen.add(id(value))
            inner, items = _inside(value, holder, self._answered)
            for item in items:
                self._search(item, inner, depth - 1, found, seen)

    def _leaf(self, value: Any) -> str | None:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return type(value).__name__ if value == self._number else None
        if isinstance(value, str):
            return None if self._text not in value else "str" if value == self._text else JSON
        return JSON if isinstance(value, bytes) and self._bytes in value else None


def _inside(value: Any, holder: str, answered: bool) -> tuple[str, Iterable[Any]]:
    """What a value holds, and the name of the holder: lists and closures hold for whatever holds them. What
    the API ``answered`` is not the value of the user, though it may be equal."""
    if isinstance(value, type) or (isinstance(value, Response) and not answered):
        return holder, ()
    if isinstance(value, httpx.Response):
        return holder, [value.content] if answered and value.is_stream_consumed else ()
    if isinstance(value, BaseModel):
        return type(value).__name__, [*vars(value).values(), *(value.model_extra or {}).values()]
    if dataclasses.is_dataclass(value):
        return type(value).__name__, [getattr(value, part.name, None) for part in dataclasses.fields(value)]
    if isinstance(value, dict | MappingProxyType):
        return "dict", [*value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return holder, [*value]
    if isinstance(value, functools.partial):
        return holder, [*value.args, *value.keywords.values()]
    if isinstance(value, FunctionType) and OURS.search(value.__code__.co_filename):
        return holder, [cell.cell_contents for cell in value.__closure__ or () if _is_full(cell)]
    if type(value).__module__.startswith(("pulumi_hosting.", "ansible_collections.hosting.")):
        # Not the objects in an object: a client knows the task that it serves, and is no way that the value
        # goes.
        return type(value).__name__, [
            part for part in getattr(value, "__dict__", {}).values() if isinstance(part, CONTAINERS)
        ]
    return holder, ()


def _is_full(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # an empty cell raises
    except ValueError:
        return False
    return True


def _listed(forms: Iterable[Form]) -> str:
    """The forms in words; a bare value beside a holder of it says nothing more."""
    held = [form for form in forms if form.holder] or forms
    return " or ".join(sorted(map(str, held)))
