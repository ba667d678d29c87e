"""Engine events, in the shape of Pulumi's own event log: one JSON object for each."""

import json
import threading
import time
from collections.abc import Callable, Iterable
from typing import TextIO

from ..model.property_values import Properties, hide_secrets
from ..model.state import ResourceState
from ..steps.base import Step

Event = Properties
Listener = Callable[[Event], None]


class Events:
    """Numbers and times events and hands them to every listener, one at a time."""

    def __init__(self, listeners: Iterable[Listener] = (), clock: Callable[[], float] = time.time) -> None:
        self._listeners = list(listeners)
        self._clock = clock
        self._sequence = 0
        self._lock = threading.RLock()

    def emit(self, kind: str, body: Properties) -> None:
        with self._lock:
            event = {"sequence": self._sequence, "timestamp": int(self._clock()), kind: body}
            self._sequence += 1
            for listener in self._listeners:
                listener(event)

    def prelude(self, config: dict[str, str]) -> None:
        self.emit("preludeEvent", {"config": config})

    def cancel(self) -> None:
        self.emit("cancelEvent", {})

    def diagnostic(self, severity: str, message: str, urn: str = "", *, ephemeral: bool = False) -> None:
        """`severity`: debug, info, info#err (a line that a process printed on stderr), warning or error."""
        prefix = {"error": "error: ", "warning": "warning: "}.get(severity, "")
        body: Properties = {
            "prefix": prefix,
            "message": message.rstrip("\n") + "\n",
            "color": "never",
            "severity": severity,
        }
        if urn:
            body["urn"] = urn
        if ephemeral:
            body["ephemeral"] = True
        self.emit("diagnosticEvent", body)

    def pre(self, step: Step, *, planning: bool) -> None:
        self.emit("resourcePreEvent", _planned({"metadata": metadata(step, step.op)}, planning))

    def outputs(self, step: Step, op: str, *, planning: bool) -> None:
        self.emit("resOutputsEvent", _planned({"metadata": metadata(step, op)}, planning))

    def failed(self, step: Step, steps: int) -> None:
        self.emit("resOpFailedEvent", {"metadata": metadata(step, step.op), "status": 0, "steps": steps})

    def summary(
        self, changes: dict[str, int], *, seconds: float, preview: bool, corrupt: bool, result: str
    ) -> None:
        self.emit(
            "summaryEvent",
            {
                "maybeCorrupt": corrupt,
                "durationSeconds": int(seconds),
                "resourceChanges": changes,
                "PolicyPacks": {},
                "isPreview": preview,
                "result": result,
            },
        )


def _planned(body: Properties, planning: bool) -> Properties:
    return body | ({"planning": True} if planning else {})


def metadata(step: Step, op: str) -> Properties:
    result: Properties = {
        "op": op,
        "urn": step.urn,
        "type": step.res.type,
        "old": _state(step.old),
        "new": _state(step.new),
        "detailedDiff": None
        if step.detailed is None
        else {path: {"diffKind": kind, "inputDiff": False} for path, kind in step.detailed.items()},
        "provider": step.res.provider,
    }
    if step.keys:
        result["keys"] = list(step.keys)
    if step.diffs:
        result["diffs"] = list(step.diffs)
    if step.logical:
        result["logical"] = True
    return result


def _state(state: ResourceState | None) -> Properties | None:
    if state is None:
        return None
    result: Properties = {
        "type": state.type,
        "urn": state.urn,
        "custom": state.custom,
        "id": state.id,
        "parent": state.parent,
        "inputs": _shown(state.inputs),
        "outputs": _shown(state.outputs),
        "provider": state.provider,
    }
    flags = {
        "delete": state.delete,
        "protect": state.protect,
        "external": state.external,
        "retainOnDelete": state.retain_on_delete,
        "initErrors": state.init_errors,
    }
    return result | {key: value for key, value in flags.items() if value}


def _shown(properties: Properties) -> Properties:
    """Properties to print: without secrets and without the internal ones of SDK and engine."""
    return {key: hide_secrets(value) for key, value in properties.items() if not key.startswith("__")}


class Digest:
    """A listener that collects what `preview --json` prints: one object, with the keys of Pulumi's."""

    def __init__(self) -> None:
        self.content: Properties = {
            "config": {},
            "steps": [],
            "diagnostics": [],
            "duration": 0,
            "changeSummary": {},
        }

    def __call__(self, event: Event) -> None:
        if prelude := event.get("preludeEvent"):
            self.content["config"] = prelude["config"]
        elif before := event.get("resourcePreEvent"):
            self.content["steps"].append(_digested(before["metadata"]))
        elif (
            (message := event.get("diagnosticEvent"))
            and message["severity"] != "debug"
            and not message.get("ephemeral")
        ):
            self.content["diagnostics"].append(
                {key: message[key] for key in ("urn", "message", "severity") if key in message}
            )
        elif summary := event.get("summaryEvent"):
            self.content["duration"] = summary["durationSeconds"] * 1_000_000_000
            self.content["changeSummary"] = summary["resourceChanges"]


def _digested(metadata: Properties) -> Properties:
    step = {"op": metadata["op"], "urn": metadata["urn"], "provider": metadata["provider"]}
    facts = {
        "oldState": metadata["old"],
        "newState": metadata["new"],
        "diffReasons": metadata.get("diffs"),
        "replaceReasons": metadata.get("keys"),
        "detailedDiff": metadata["detailedDiff"],
    }
    return step | {key: value for key, value in facts.items() if value}


def write_lines(file: TextIO) -> Listener:
    """A listener that writes each event as one line of JSON."""

    def listen(event: Event) -> None:
        file.write(json.dumps(event) + "\n")
        file.flush()

    return listen
