"""Prints an operation: one line per resource, with Pulumi's signs, then diagnostics, outputs and a
summary.
"""

import json
from collections.abc import Callable

from ..model.property_values import UNKNOWN_STRING, Properties, changed_keys
from ..model.urns import urn_name, urn_type
from ..steps.base import SIGNS, verb
from .engine_events import Event

BANNER = (
    "This is the offline engine of pulumi-hosting, for trying and testing. It is not Pulumi's: run "
    "real stacks with `pulumi`."
)

_COUNTED = ("create", "update", "delete", "replace", "import", "read", "discard")
"""What the summary counts, in its order."""
_TITLES = {
    "up": ("Updating", "update"),
    "preview": ("Previewing update", "update"),
    "refresh": ("Refreshing", "refresh"),
    "destroy": ("Destroying", "destroy"),
    "import": ("Importing", "import"),
}
"""A command's title, and what its preview previews."""


class Display:
    """A listener to engine events that prints them with `write`, which takes a line."""

    def __init__(self, write: Callable[[str], None], *, stack: str, diff: bool = False) -> None:
        self._write = write
        self._stack = stack
        self._diff = diff
        self._done = True
        self._shown: set[tuple[str, str]] = set()

    def start(self, command: str, *, preview: bool) -> None:
        self._done = not preview
        self._write(BANNER)
        title, previewed = _TITLES[command]
        self._write(f"{f'Previewing {previewed}' if preview else title} ({self._stack}):")

    def __call__(self, event: Event) -> None:
        if "resOutputsEvent" in event:
            self._resource(event["resOutputsEvent"]["metadata"])
        elif "resourcePreEvent" in event:
            metadata = event["resourcePreEvent"]["metadata"]
            # Components have no result: they are printed when they are announced.
            if (
                metadata["new"] is not None
                and not metadata["new"]["custom"]
                and metadata["op"] not in ("same", "refresh")
            ):
                self._resource(metadata)
        elif "resOpFailedEvent" in event:
            metadata = event["resOpFailedEvent"]["metadata"]
            self._line(metadata, "failed")
        elif "diagnosticEvent" in event:
            self._diagnostic(event["diagnosticEvent"])

    def _resource(self, metadata: Properties) -> None:
        if metadata["op"] == "same" or (metadata["op"], metadata["urn"]) in self._shown:
            return
        self._shown.add((metadata["op"], metadata["urn"]))
        self._line(metadata, self._retained(metadata) or verb(metadata["op"], done=self._done))
        if self._diff and metadata["op"] in ("update", "replace", "refresh"):
            self._changes(metadata)

    def _line(self, metadata: Properties, status: str) -> None:
        keys = metadata.get("diffs") or _changed_inputs(metadata)
        detail = (
            f" [diff: {_signed(metadata, list(keys))}]"
            if keys and metadata["op"] in ("update", "replace", "create-replacement")
            else ""
        )
        self._write(
            f" {SIGNS.get(metadata['op'], '?'):<2} {urn_type(metadata['urn'])} "
            f"{urn_name(metadata['urn'])} {status}{detail}"
        )

    def _retained(self, metadata: Properties) -> str | None:
        """The status of a delete that keeps the object (`retain_on_delete`).

        It is counted as a delete, as in Pulumi.
        """
        old = metadata["old"]
        # A refresh that found nothing has a new state.
        is_deletion = metadata["op"] in ("delete", "delete-replaced") and metadata["new"] is None
        if not is_deletion or not old["custom"] or not old.get("retainOnDelete"):
            return None
        return f"{'retained, not deleted' if self._done else 'retain, not delete'} (id {old['id']})"

    def _changes(self, metadata: Properties) -> None:
        states = _inputs(metadata["old"]), _inputs(metadata["new"])
        for key in _changed_inputs(metadata):
            before, after = (json.dumps(values.get(key), ensure_ascii=False) for values in states)
            sign = _sign(metadata, key)
            change = {"+": after, "-": before}.get(sign, f"{before} => {after}")
            self._write(f"      {sign} {key}: {change}")

    def _diagnostic(self, event: Properties) -> None:
        if event["severity"] == "debug" or event.get("ephemeral"):
            return
        where = f"{urn_type(event['urn'])} ({urn_name(event['urn'])}): " if event.get("urn") else ""
        for line in f"{where}{event['prefix']}{event['message']}".rstrip("\n").split("\n"):
            self._write(f"    {line}")

    def end(
        self, changes: dict[str, int], outputs: Properties, *, preview: bool, seconds: float, failed: bool
    ) -> None:
        if outputs and not failed:
            self._write("")
            self._write("Outputs:")
            self._mapping(outputs, 4)
        self._write("")
        self._write("Resources:")
        kinds = [op for op in _COUNTED if changes.get(op)]
        for op in kinds:
            words = f"to {verb(op, done=False)}" if preview else verb(op, done=True)
            self._write(f"    {SIGNS[op]:<2}{changes[op]} {words}")
        total = sum(changes[op] for op in kinds)
        pieces = [f"{total} changes"] if len(kinds) > 1 else []
        pieces += [f"{changes['same']} unchanged"] if changes.get("same") else []
        if pieces:
            self._write(f"    {'. '.join(pieces)}")
        if not changes:
            self._write("    none")
        if not preview:
            self._write("")
            self._write(f"Duration: {seconds:.0f}s")

    # Values as Pulumi's CLI prints them: keys sorted and aligned, one line each, secret and unknown ones
    # without quotes.

    def _mapping(self, values: Properties, indent: int) -> None:
        width = max(map(len, values))
        for key in sorted(values):
            self._value(f"{' ' * indent}{key:<{width}}: ", values[key], indent)

    def _value(self, head: str, value: object, indent: int) -> None:
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


def _inputs(state: Properties | None) -> Properties:
    return state["inputs"] if state else {}


def _changed_inputs(metadata: Properties) -> list[str]:
    return changed_keys(_inputs(metadata["old"]), _inputs(metadata["new"]))


def _sign(metadata: Properties, key: str) -> str:
    """What happens to an input."""
    old, new = _inputs(metadata["old"]), _inputs(metadata["new"])
    if key in old:
        return "~" if key in new else "-"
    return "+" if key in new else "~"


def _signed(metadata: Properties, keys: list[str]) -> str:
    """The changed properties, grouped by what happens to them: ``+new-old~size,note``."""
    groups = {sign: [key for key in keys if _sign(metadata, key) == sign] for sign in "+-~"}
    return "".join(sign + ",".join(names) for sign, names in groups.items() if names)
