"""The objects that a tool manages: the resources of Pulumi stacks, the results of Ansible tasks."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pulumi_hosting.resources import RESOURCES

SERVER, SERVER_IP, PTR = "server", "server_ip", "ptr"
SSH_KEY, DOMAIN, WEBHOOK = "ssh_key", "domain", "webhook_subscription"
"""Kinds of resources that the check treats in a special way."""

_PAID_ACTIONS = ("renew_server", "renew_domain", "pay_invoice")
_TYPE = re.compile(r"(?:pulumi-python:dynamic/hosting|hosting:index):(\w+)")


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
                kind = _TYPE.fullmatch(resource["type"])
                if kind is None or resource.get("external"):
                    continue
                found.append(
                    ManagedObject(
                        re.sub("(?<!^)([A-Z])", r"_\1", kind[1]).lower(),
                        str(resource.get("id", "")),
                        resource["urn"].rpartition("::")[2],
                        (resource.get("outputs") or {}).get("mode") or "live",
                        bool(resource.get("delete")),
                        bool(resource.get("deletedWith")),
                        bool(resource.get("retainOnDelete")),
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
        for result in _flat(results):
            if not result.get("skipped") and (result.get("changed") or not result.get("failed")):
                known.add(result)
        return cls(tuple(known.objects.values()), frozenset(known.operations))


class _KnownFromTasks:
    """What the tasks so far manage."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], ManagedObject] = {}
        self.operations: set[str] = set()
        self._key_lines: dict[str, str] = {}
        """Of SSH keys, which tasks may remove by their public key."""

    def add(self, result: Mapping[str, Any]) -> None:
        for kind in RESOURCES:
            reported = result.get(kind)
            if isinstance(reported, Mapping) and reported.get("id"):
                self._manage(kind, reported, _before(result))
            elif kind in result and reported is None:
                self._remove(kind, _before(result))
        if result.get("charge") and result.get("changed"):
            self.operations |= {name for name in _PAID_ACTIONS if _is_action(result, name)}

    def _manage(self, kind: str, reported: Mapping[str, Any], before: Mapping[str, Any]) -> None:
        id = str(reported["id"])
        if before.get("id") not in (None, "", reported["id"]):
            # Replaced, or an order that has become a server.
            self.objects.pop((kind, str(before["id"])), None)
        name = str(reported.get("name") or reported.get("url") or reported.get("address") or "")
        self.objects[kind, id] = ManagedObject(kind, id, name, str(reported.get("mode") or "live"))
        if kind == SSH_KEY:
            self._key_lines[id] = _key(reported.get("public_key"))

    def _remove(self, kind: str, before: Mapping[str, Any]) -> None:
        gone = {str(value) for key, value in before.items() if key in ("id", "name", "url") and value}
        gone |= {item.id for item in self.objects.values() if item.kind == kind and item.name in gone}
        line = _key(before.get("public_key"))
        gone |= {id for id, known in self._key_lines.items() if kind == SSH_KEY and line and known == line}
        for key, item in list(self.objects.items()):
            with_its_server = (
                kind == SERVER and item.kind in (SERVER_IP, PTR) and item.id.partition("/")[0] in gone
            )
            if with_its_server or (item.kind == kind and gone & {item.id, item.name}):
                del self.objects[key]


def _flat(results: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for result in results:
        if isinstance(result.get("results"), list):
            yield from _flat(item for item in result["results"] if isinstance(item, Mapping))
        else:
            yield result


def _before(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object before the task: from its diff, else from its arguments."""
    diff = result.get("diff")
    before = diff.get("before") if isinstance(diff, Mapping) else None
    arguments = (result.get("invocation") or {}).get("module_args") or {}
    return {
        **{key: arguments.get(key) for key in ("id", "name", "url", "public_key")},
        **(before if isinstance(before, Mapping) else {}),
    }


def _key(line: object) -> str:
    """The key of an OpenSSH line, without its comment."""
    return " ".join(str(line or "").split()[:2])


def _is_action(result: Mapping[str, Any], operation: str) -> bool:
    """Whether the result is of the module of an operation: ``server_renew`` for ``renew_server``."""
    verb, _, subject = operation.partition("_")
    return (
        f"{subject}_{verb}" in result
        or str(result.get("action", "")).rpartition(".")[2] == f"{subject}_{verb}"
    )
