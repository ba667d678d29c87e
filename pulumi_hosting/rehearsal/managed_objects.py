"""What a tool says it manages: the resources of Pulumi stacks, the results of Ansible tasks."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

SERVER, SERVER_IP, PTR = "server", "server_ip", "ptr"
SSH_KEY, DOMAIN, WEBHOOK = "ssh_key", "domain", "webhook_subscription"
KINDS = (SERVER, DOMAIN, SSH_KEY, SERVER_IP, PTR, WEBHOOK)

_TYPE = re.compile(r"(?:pulumi-python:dynamic/hosting|hosting:index):(\w+)")


@dataclass(frozen=True, slots=True)
class ManagedObject:
    """One object that a tool says it manages. ``id``: as the tool writes it, such as ``20001``, ``order:40001``, ``20001/30003``."""

    kind: str
    id: str
    name: str = ""
    mode: str = "live"
    is_leaving: bool = False
    """The tool still has to delete it: it may live, and it may be gone."""
    leaves_with_server: bool = False
    """The program says that it is deleted together with its server (``deleted_with``), so its price must have been refunded."""
    is_retained: bool = False
    """The program says that the object outlives its removal (``retain_on_delete``)."""

    def __str__(self) -> str:
        return f"{self.kind.replace('_', ' ')} {self.id}" + (f" ({self.name})" if self.name else "")


@dataclass(frozen=True, slots=True)
class ManagedObjects:
    """All that a tool claims. ``operations``: paid actions that it reported, such as ``renew_server``; they explain their charges."""

    claims: tuple[ManagedObject, ...] = ()
    operations: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[ManagedObject]:
        return iter(self.claims)

    def __add__(self, other: "ManagedObjects") -> "ManagedObjects":
        return ManagedObjects(self.claims + other.claims, self.operations | other.operations)

    @classmethod
    def of_stack(cls, *exports: Mapping[str, Any]) -> "ManagedObjects":
        """The resources of one or several stacks, each as ``stack export`` gives it. What the program only read is no claim."""
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
        """What the results of Ansible tasks say, in their order; those of check mode do not belong here.

        A task that reports an object claims it, from a task that reports its absence on it is claimed no more (by the id or name in
        the task's diff or arguments). A task that failed claims what it says that it made, else nothing.
        """
        held: dict[tuple[str, str], ManagedObject] = {}
        key_lines: dict[str, str] = {}  # of SSH keys, which are recognised by them
        operations: set[str] = set()
        for result in _flat(results):
            if (result.get("failed") and not result.get("changed")) or result.get("skipped"):
                continue
            for kind in KINDS:
                shown = result.get(kind)
                if isinstance(shown, Mapping) and shown.get("id"):
                    id = str(shown["id"])
                    before = _removed(result, kind)
                    if before.get("id") not in (None, "", shown["id"]):
                        held.pop((kind, str(before["id"])), None)  # replaced, or an order that has become a server
                    name = str(shown.get("name") or shown.get("url") or shown.get("address") or "")
                    held[kind, id] = ManagedObject(kind, id, name, str(shown.get("mode") or "live"))
                    if kind == SSH_KEY:
                        key_lines[id] = _key(shown.get("public_key"))
                elif kind in result and shown is None:
                    removed = _removed(result, kind)
                    gone = {str(value) for key, value in removed.items() if key in ("id", "name", "url") and value}
                    gone |= {claim.id for claim in held.values() if claim.kind == kind and claim.name in gone}
                    line = _key(removed.get("public_key"))
                    gone |= {id for id, known in key_lines.items() if kind == SSH_KEY and line and known == line}
                    for key, claim in list(held.items()):
                        goes_along = kind == SERVER and claim.kind in (SERVER_IP, PTR) and claim.id.partition("/")[0] in gone
                        if goes_along or (claim.kind == kind and gone & {claim.id, claim.name}):
                            del held[key]
            if result.get("charge") and result.get("changed"):
                operations |= {name for name in ("renew_server", "renew_domain", "pay_invoice") if _is_action(result, name)}
        return cls(tuple(held.values()), frozenset(operations))


def _flat(results: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for result in results:
        if isinstance(result.get("results"), list):
            yield from _flat(item for item in result["results"] if isinstance(item, Mapping))
        else:
            yield result


def _removed(result: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The object as it was before the task: from its diff, else what the task's arguments name."""
    diff = result.get("diff")
    before = diff.get("before") if isinstance(diff, Mapping) else None
    arguments = (result.get("invocation") or {}).get("module_args") or {}
    return {**{key: arguments.get(key) for key in ("id", "name", "url", "public_key")}, **(before if isinstance(before, Mapping) else {})}


def _key(line: object) -> str:
    """The key itself of an OpenSSH line: without its comment."""
    return " ".join(str(line or "").split()[:2])


def _is_action(result: Mapping[str, Any], operation: str) -> bool:
    """Whether the result is of the module that does ``operation``: ``renew_server`` is done by ``server_renew``."""
    verb, _, subject = operation.partition("_")
    return f"{subject}_{verb}" in result or str(result.get("action", "")).rpartition(".")[2] == f"{subject}_{verb}"
