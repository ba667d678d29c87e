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
        self.emit("diagnosticEvent", body | _set(urn=urn, ephemeral=ephemeral))

    def pre(self, step: Step, *, planning: bool) -> None:
        self.emit("resourcePreEvent", {"metadata": metadata(step, step.op)} | _set(planning=planning))

    def outputs(self, step: Step, op: str, *, planning: bool) -> None:
        self.emit("resOutputsEvent", {"metadata": metadata(step, op)} | _set(planning=planning))

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
    return result | _set(keys=list(step.keys), diffs=list(step.diffs), logical=step.logical)


def _set(**facts: object) -> Properties:
    """Those that are set; Pulumi leaves out the others."""
    return {name: value for name, value in facts.items() if value}


def _state(state: ResourceState | None) -> Properties | None:
    if state is None:
        return None
    names = ("type", "urn", "custom", "id", "parent")
    result: Properties = {name: getattr(state, name) for name in names}
    result["inputs"], result["outputs"] = _shown(state.inputs), _shown(state.outputs)
    result["provider"] = state.provider
    return result | _set(
        delete=state.delete,
        protect=state.protect,
        external=state.external,
        retainOnDelete=state.retain_on_delete,
        initErrors=state.init_errors,
    )


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
    return step | _set(
        oldState=metadata["old"],
        newState=metadata["new"],
        diffReasons=metadata.get("diffs"),
        replaceReasons=metadata.get("keys"),
        detailedDiff=metadata["detailedDiff"],
    )


def write_lines(file: TextIO) -> Listener:
    """A listener that writes each event as one line of JSON."""

    def listen(event: Event) -> None:
        file.write(json.dumps(event) + "\n")
        file.flush()

    return listen
