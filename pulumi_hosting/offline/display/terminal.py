"""Prints an operation: one line per resource, with Pulumi's signs, then diagnostics, outputs and a
summary.
"""

import json
from collections.abc import Callable
from typing import Any

from ..model.property_values import UNKNOWN_STRING
from ..model.urns import urn_name, urn_type
from ..steps.operations import (
    CREATE,
    CREATE_REPLACEMENT,
    DELETE,
    DELETE_REPLACED,
    DISCARD,
    DISCARD_REPLACED,
    IMPORT,
    IMPORT_REPLACEMENT,
    READ,
    READ_REPLACEMENT,
    REFRESH,
    REPLACE,
    SAME,
    UPDATE,
)
from .engine_events import Event

BANNER = (
    "This is the offline engine of pulumi-hosting, for trying and testing. It is not Pulumi's: run "
    "real stacks with `pulumi`."
)

_SIGNS = {
    SAME: " ",
    CREATE: "+",
    UPDATE: "~",
    DELETE: "-",
    REPLACE: "+-",
    CREATE_REPLACEMENT: "++",
    DELETE_REPLACED: "--",
    READ: ">",
    READ_REPLACEMENT: ">>",
    REFRESH: "~",
    DISCARD: "<",
    DISCARD_REPLACED: "<<",
    IMPORT: "=",
    IMPORT_REPLACEMENT: "=>",
}
_DONE = {
    CREATE: "created",
    UPDATE: "updated",
    DELETE: "deleted",
    REPLACE: "replaced",
    CREATE_REPLACEMENT: "created replacement",
    DELETE_REPLACED: "deleted original",
    READ: "read",
    READ_REPLACEMENT: "read for replacement",
    REFRESH: "refreshed",
    DISCARD: "discarded",
    DISCARD_REPLACED: "discarded original",
    IMPORT: "imported",
    IMPORT_REPLACEMENT: "imported replacement",
    SAME: "unchanged",
}
_DOING = {
    CREATE: "create",
    UPDATE: "update",
    DELETE: "delete",
    REPLACE: "replace",
    CREATE_REPLACEMENT: "create replacement",
    DELETE_REPLACED: "delete original",
    READ: "read",
    READ_REPLACEMENT: "read for replacement",
    REFRESH: "refresh",
    DISCARD: "discard",
    DISCARD_REPLACED: "discard original",
    IMPORT: "import",
    IMPORT_REPLACEMENT: "import replacement",
}
_SUMMARY = (
    (CREATE, "to create", "created"),
    (UPDATE, "to update", "updated"),
    (DELETE, "to delete", "deleted"),
    (REPLACE, "to replace", "replaced"),
    (IMPORT, "to import", "imported"),
    (READ, "to read", "read"),
    (DISCARD, "to discard", "discarded"),
)
_TITLES = {
    "up": "Updating",
    "preview": "Previewing update",
    "refresh": "Refreshing",
    "destroy": "Destroying",
    "import": "Importing",
}
_PREVIEWS = {
    "up": "Previewing update",
    "refresh": "Previewing refresh",
    "destroy": "Previewing destroy",
    "import": "Previewing import",
}


class Display:
    """A listener to engine events that prints them with `write`, which takes a line."""

    def __init__(self, write: Callable[[str], None], *, stack: str, diff: bool = False) -> None:
        self._write = write
        self._stack = stack
        self._diff = diff
        self._words = _DONE
        self._shown: set[tuple[str, str]] = set()

    def start(self, command: str, *, preview: bool) -> None:
        self._words = _DOING if preview else _DONE
        self._write(BANNER)
        title = _PREVIEWS.get(command, _TITLES[command]) if preview else _TITLES[command]
        self._write(f"{title} ({self._stack}):")

    def __call__(self, event: Event) -> None:
        if "resOutputsEvent" in event:
            self._resource(event["resOutputsEvent"]["metadata"])
        elif "resourcePreEvent" in event:
            metadata = event["resourcePreEvent"]["metadata"]
            # Components have no result: they are printed when they are announced.
            if (
                metadata["new"] is not None
                and not metadata["new"]["custom"]
                and metadata["op"] not in (SAME, REFRESH)
            ):
                self._resource(metadata)
        elif "resOpFailedEvent" in event:
            metadata = event["resOpFailedEvent"]["metadata"]
            self._line(metadata, "failed")
        elif "diagnosticEvent" in event:
            self._diagnostic(event["diagnosticEvent"])

    def _resource(self, metadata: dict[str, Any]) -> None:
        if metadata["op"] == SAME or (metadata["op"], metadata["urn"]) in self._shown:
            return
        self._shown.add((metadata["op"], metadata["urn"]))
        self._line(metadata, self._retained(metadata) or self._words.get(metadata["op"], metadata["op"]))
        if self._diff and metadata["op"] in (UPDATE, REPLACE, REFRESH):
            self._changes(metadata)

    def _line(self, metadata: dict[str, Any], status: str) -> None:
        keys = metadata.get("diffs") or _changed_inputs(metadata)
        detail = (
            f" [diff: {_signed(metadata, list(keys))}]"
            if keys and metadata["op"] in (UPDATE, REPLACE, CREATE_REPLACEMENT)
            else ""
        )
        self._write(
            f" {_SIGNS.get(metadata['op'], '?'):<2} {urn_type(metadata['urn'])} "
            f"{urn_name(metadata['urn'])} {status}{detail}"
        )

    def _retained(self, metadata: dict[str, Any]) -> str | None:
        """The status of a delete that keeps the object (`retain_on_delete`).

        It is counted as a delete, as in Pulumi.
        """
        old = metadata["old"]
        # A refresh that found nothing has a new state.
        is_deletion = metadata["op"] in (DELETE, DELETE_REPLACED) and metadata["new"] is None
        if not is_deletion or not old["custom"] or not old.get("retainOnDelete"):
            return None
        return f"{'retained, not deleted' if self._words is _DONE else 'retain, not delete'} (id {old['id']})"

    def _changes(self, metadata: dict[str, Any]) -> None:
        old, new = _inputs(metadata["old"]), _inputs(metadata["new"])
        for key in _changed_inputs(metadata):
            before, after = (json.dumps(values.get(key), ensure_ascii=False) for values in (old, new))
            sign = "+" if key not in old else "-" if key not in new else "~"
            self._write(
                f"      {sign} {key}: "
                + (after if sign == "+" else before if sign == "-" else f"{before} => {after}")
            )

    def _diagnostic(self, event: dict[str, Any]) -> None:
        if event["severity"] == "debug" or event.get("ephemeral"):
            return
        where = f"{urn_type(event['urn'])} ({urn_name(event['urn'])}): " if event.get("urn") else ""
        first, *rest = (event["prefix"] + event["message"]).rstrip("\n").split("\n")
        self._write(f"    {where}{first}")
        for line in rest:
            self._write(f"    {line}")

    def end(
        self, changes: dict[str, int], outputs: dict[str, Any], *, preview: bool, seconds: float, failed: bool
    ) -> None:
        if outputs and not failed:
            self._write("")
            self._write("Outputs:")
            self._mapping(outputs, 4)
        self._write("")
        self._write("Resources:")
        kinds = [(op, future if preview else past) for op, future, past in _SUMMARY if changes.get(op)]
        for op, words in kinds:
            self._write(f"    {_SIGNS[op]:<2}{changes[op]} {words}")
        total = sum(changes[op] for op, _ in kinds)
        pieces = [f"{total} changes"] if len(kinds) > 1 else []
        pieces += [f"{changes[SAME]} unchanged"] if changes.get(SAME) else []
        if pieces:
            self._write(f"    {'. '.join(pieces)}")
        if not changes:
            self._write("    none")
        if not preview:
            self._write("")
            self._write(f"Duration: {seconds:.0f}s")

    # Values as Pulumi's CLI prints them: keys sorted and aligned, one line each, secret and unknown ones
    # without quotes.

    def _mapping(self, values: dict[str, Any], indent: int) -> None:
        width = max(map(len, values))
        for key in sorted(values):
            self._value(f"{' ' * indent}{key:<{width}}: ", values[key], indent)

    def _value(self, head: str, value: Any, indent: int) -> None:
        if isinstance(value, dict) and value:
            self._write(f"{head}{{")
            self._mapping(value, indent + 4)
            self._write(" " * indent + "}")
        elif isinstance(value, list) and value:
            self._write(f"{head}[")
            for index, item in enumerate(value):
                self._value(f"{' ' * (indent + 4)}[{index}]: ", item, indent + 4)
            self._write(" " * indent + "]")
        else:
            shown = "[unknown]" if value == UNKNOWN_STRING else value
            self._write(
                head
                + (shown if shown in ("[unknown]", "[secret]") else json.dumps(shown, ensure_ascii=False))
            )


def _inputs(state: dict[str, Any] | None) -> dict[str, Any]:
    return state["inputs"] if state else {}


def _changed_inputs(metadata: dict[str, Any]) -> list[str]:
    old, new = _inputs(metadata["old"]), _inputs(metadata["new"])
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))


def _signed(metadata: dict[str, Any], keys: list[str]) -> str:
    """The changed properties, grouped by what happens to them: ``+new-old~size,note``."""
    old, new = _inputs(metadata["old"]), _inputs(metadata["new"])
    groups: dict[str, list[str]] = {"+": [], "-": [], "~": []}
    for key in keys:
        groups[
            "+" if key not in old and key in new else "-" if key in old and key not in new else "~"
        ].append(key)
    return "".join(sign + ",".join(names) for sign, names in groups.items() if names)
