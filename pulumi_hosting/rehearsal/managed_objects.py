"""The objects that a tool manages: the resources of Pulumi stacks, the results of Ansible tasks."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pulumi_hosting.rehearsal.facts import JsonObject, mapping
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.powers import natural_key
from pulumi_hosting.session.text import without_secrets

SERVER, SERVER_IP, PTR = "server", "server_ip", "ptr"
SSH_KEY, DOMAIN, WEBHOOK = "ssh_key", "domain", "webhook_subscription"
"""Kinds of resources of which the account check knows more than that they exist: what they cost, and when
they end."""

COLLECTION = "hosting.cloud"
_PAID_ACTIONS = ("renew_server", "renew_domain", "pay_invoice")
_TYPE = re.compile(r"(?:pulumi-python:dynamic/hosting|hosting:index):(\w+)")


def kind_of(type: str) -> str | None:
    """The kind of a resource by its type in Pulumi; None for what is no resource of this provider.

    >>> kind_of("hosting:index:SshKey"), kind_of("pulumi-python:dynamic/hosting:Server"), kind_of("a:b:C")
    ('ssh_key', 'server', None)
    """
    found = _TYPE.fullmatch(type)
    return re.sub("(?<!^)([A-Z])", r"_\1", found[1]).lower() if found else None


@dataclass(frozen=True, slots=True)
class ManagedObject:
    """One managed object.

    ``id``: as the tool writes it, such as ``20001``, ``order:40001`` or ``20001/30003``.
    """

    kind: str
    id: str
    name: str = ""
    mode: str = "live"
    is_leaving: bool = False
    """The tool still has to delete it: it may exist, and it may be gone."""
    leaves_with_server: bool = False
    """The program deletes it together with its server (``deleted_with``), so its price must have been
    refunded.
    """
    is_retained: bool = False
    """The object stays when it leaves the program (``retain_on_delete``)."""
    is_kept_paid: bool = False
    """The tool renews it as it is declared (``keep_paid``)."""

    def __str__(self) -> str:
        return f"{self.kind.replace('_', ' ')} {self.id}" + (f" ({self.name})" if self.name else "")


@dataclass(frozen=True, slots=True)
class ManagedObjects:
    """All managed objects of a tool.

    ``operations``: the paid actions that it reported, such as ``renew_server``.
    """

    objects: tuple[ManagedObject, ...] = ()
    operations: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[ManagedObject]:
        return iter(self.objects)

    @property
    def kept_paid(self) -> list[tuple[str, str]]:
        """Kind and id of those that a run renews."""
        return [(item.kind, item.id) for item in self if item.is_kept_paid]

    def __add__(self, other: "ManagedObjects") -> "ManagedObjects":
        return ManagedObjects(self.objects + other.objects, self.operations | other.operations)

    @classmethod
    def of_stack(cls, *exports: Mapping[str, Any]) -> "ManagedObjects":
        """The resources of stacks, each as ``stack export`` prints it; without those that the program only
        reads.
        """
        found = []
        for export in exports:
            for resource in (export.get("deployment") or {}).get("resources") or ():
                kind = kind_of(resource["type"])
                if kind is None or resource.get("external"):
                    continue
                found.append(
                    ManagedObject(
                        kind,
                        str(resource.get("id", "")),
                        resource["urn"].rpartition("::")[2],
                        (resource.get("outputs") or {}).get("mode") or "live",
                        bool(resource.get("delete") or resource.get("pendingReplacement")),
                        bool(resource.get("deletedWith")),
                        bool(resource.get("retainOnDelete")),
                        bool((resource.get("inputs") or {}).get("keepPaid")),
                    )
                )
        return cls(tuple(found))

    @classmethod
    def of_results(cls, results: Iterable[Mapping[str, Any]]) -> "ManagedObjects":
        """The results of Ansible tasks, in order; without those of check mode.

        A task that reports an object manages it. After a task that reports its absence it is not managed any
        more; it is found by the id or name in the task's diff or arguments. A failed task manages what it
        reports as changed.
        """
        known = _KnownFromTasks()
        for result in flat(results):
            if not result.get("skipped") and (result.get("changed") or not result.get("failed")):
                known.add(result)
        return cls(tuple(known.objects.values()), frozenset(known.operations))


class _KnownFromTasks:
    """What the tasks so far manage."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], ManagedObject] = {}
        self.operations: set[str] = set()
        self._names: dict[tuple[str, str], set[str]] = {}
        """What else each object may be named by in a task that removes it."""

    def add(self, result: JsonObject) -> None:
        for kind in RESOURCES:
            reported = result.get(kind)
            if isinstance(reported, Mapping) and reported.get("id"):
                self._manage(kind, reported, _before(kind, result))
            elif kind in result and reported is None:
                self._remove(kind, _before(kind, result))
        if result.get("charge") and result.get("changed"):
            self.operations |= {name for name in _PAID_ACTIONS if _is_action(result, name)}

    def _manage(self, kind: str, reported: JsonObject, before: JsonObject) -> None:
        id = str(reported["id"])
        if before.get("id") not in (None, "", reported["id"]):
            # Replaced, or an order that has become a server.
            self.objects.pop((kind, str(before["id"])), None)
        url = without_secrets(str(reported.get("url") or ""))
        name = str(reported.get("name") or url or reported.get("address") or "")
        names = _names(kind, reported)
        for known in [found for found in self._names if found[0] == kind and found[1].startswith("order:")]:
            if names & self._names[known]:  # a task that failed reported the order of this object
                self.objects.pop(known, None)
        mode, is_kept = str(reported.get("mode") or "live"), bool(before.get("keep_paid"))
        self.objects[kind, id] = ManagedObject(kind, id, name, mode, is_kept_paid=is_kept)
        self._names[kind, id] = names

    def _remove(self, kind: str, before: JsonObject) -> None:
        named = {str(before.get("id") or "")}
        gone = named | {
            id
            for found, id in self.objects
            if found == kind and _names(kind, before) & self._names.get((kind, id), set())
        }
        for found, id in list(self.objects):
            is_part = RESOURCES[found].parent == kind and id.partition("/")[0] in gone
            if is_part or (found == kind and id in gone):
                del self.objects[found, id]


def flat(results: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """The results of the collection's tasks, of loops those of each item."""
    for result in results:
        if str(result.get("action", "")).rpartition(".")[0] not in ("", COLLECTION):
            continue  # modules of other collections have results of the same names
        if isinstance(result.get("results"), list):
            of_all = {"action": result["action"]} if "action" in result else {}  # no item names it
            yield from flat({**of_all, **item} for item in result["results"] if isinstance(item, Mapping))
        else:
            yield result


def _before(kind: str, result: JsonObject) -> JsonObject:
    """The object before the task: from its diff, else from its arguments."""
    arguments = mapping(mapping(result.get("invocation")).get("module_args"))
    named = {key: arguments.get(key) for key in ("id", "keep_paid", *_naming_fields(kind))}
    return {**named, **mapping(mapping(result.get("diff")).get("before"))}


def _naming_fields(kind: str) -> tuple[str, ...]:
    """The fields that name an object among those of its kind. What is part of another object has none."""
    return () if RESOURCES[kind].parent else natural_key(RESOURCES[kind])


def _names(kind: str, values: JsonObject) -> set[str]:
    """What may name the object, in one spelling."""
    inputs, found = RESOURCES[kind].Inputs, set()
    for field in _naming_fields(kind):
        normal, value = inputs.trait(field).normal, str(values.get(field) or "")
        found.add(normal(value) if normal else value)
    return found - {""}


def _is_action(result: JsonObject, operation: str) -> bool:
    """Whether the result is of the module of an operation: ``server_renew`` for ``renew_server``."""
    verb, _, subject = operation.partition("_")
    return f"{subject}_{verb}" in (*result, str(result.get("action", "")).rpartition(".")[2])
