"""Pulumi's questions, answered by the engine of ``resources``. Knows wire values and nothing of how they arrive (dynamic or plugin)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pulumi_hosting.provider.session import SESSION, Session
from pulumi_hosting.provider.values import IDENTITY, MANAGED, WAIT_TIMEOUT, camel, from_pulumi, is_unknown, to_pulumi
from pulumi_hosting.resources import engine
from pulumi_hosting.resources.base import Context, Noun

Wire = Mapping[str, Any]


def _print(line: str) -> None:
    # Pulumi shows a provider's output as information about the stack.
    print(line, flush=True)


def _ours(props: Wire) -> dict[str, Any]:
    """What travels beside the noun's own fields, and stays with the resource."""
    return {key: props[key] for key in (IDENTITY, WAIT_TIMEOUT) if props.get(key) is not None}


@dataclass(frozen=True, slots=True)
class WireDiff:
    changes: bool
    replaces: tuple[str, ...]
    delete_before_replace: bool


@dataclass(frozen=True)
class Adapter:
    """Serves one noun."""

    noun: Noun[Any, Any]
    session: Session = field(default=SESSION)
    tell: Callable[[str], None] = field(default=_print)

    # --- questions

    def check(self, olds: Wire, news: Wire) -> tuple[dict[str, Any], dict[str, str]]:
        """Inputs in normal form (unknown ones as they came), and field → reason for those that are wrong."""
        raw, unknown = from_pulumi(news)
        checked = engine.check(self.noun, raw, unknown)
        failures = dict(checked.failures)
        ours = _ours(news)
        timeout = ours.get(WAIT_TIMEOUT)
        if timeout is not None and not is_unknown(timeout) and not (isinstance(timeout, int | float) and 0 < timeout <= 86400):
            failures["wait_timeout"] = "must be seconds: more than 0 and at most 86400"
        if olds.get(IDENTITY):
            ours[IDENTITY] = olds[IDENTITY]  # a renamed declaration keeps the identity its object is marked with
        later = {camel(name): news[camel(name)] for name in unknown}
        return {**to_pulumi(checked.values), **later, **ours}, failures

    def diff(self, id: str, olds: Wire, news: Wire) -> WireDiff:
        """Compare outputs with inputs."""
        self._claim(olds, news, id)
        raw, unknown = from_pulumi(news)
        checked = engine.check(self.noun, raw, unknown)
        found = engine.diff(self.noun, self._values(id, olds), checked.values, unknown)
        for remark in found.remarks:
            self.tell(f"{self._title(news)}: {remark}")
        return WireDiff(bool(found), tuple(map(camel, found.replaces)), self.noun.delete_before_replace)

    def create(self, props: Wire) -> tuple[str, dict[str, Any]]:
        context = self._context(props)
        state = engine.create(context, self.noun, self._inputs(props))
        return state.id, self._outputs(state, props)

    def read(self, id: str, olds: Wire) -> tuple[str, dict[str, Any], dict[str, Any]] | None:
        """Id, outputs and live inputs; None when gone."""
        self._claim(olds, olds, id)
        values = self._values(id, olds)
        state = engine.read(self._context(olds), self.noun, self._state(id, values))
        if state is None:
            return None
        managed = [name for name in olds.get(MANAGED, ()) if isinstance(name, str)]
        last = {name: values.get(name) for name in managed}
        inputs = to_pulumi(engine.live_inputs(self.noun, state, managed, last))
        kept = _ours(olds)
        return state.id, {**to_pulumi(self._recorded(state, last), ("id",)), **kept, MANAGED: managed}, {**inputs, **kept}

    def update(self, id: str, olds: Wire, news: Wire) -> dict[str, Any]:
        self._claim(olds, news, id)
        values = self._values(id, olds)
        inputs = self._inputs(news)
        fields = engine.diff(self.noun, values, inputs.given()).fields
        state = self._state(id, values)
        if fields:
            state = self.noun.update(self._context(news), state, inputs, fields)
        return self._outputs(state, news)

    def delete(self, id: str, olds: Wire) -> None:
        self.noun.delete(self._context(olds), self._state(id, self._values(id, olds)))

    # --- parts

    def _inputs(self, props: Wire) -> Any:
        checked = engine.check(self.noun, from_pulumi(props)[0])
        if checked.failures:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in checked.failures.items())
            raise ValueError(f"{self._title(props)}: {reasons}")
        return checked.inputs

    def _values(self, id: str, olds: Wire) -> dict[str, Any]:
        return {**from_pulumi(olds)[0], "id": id}

    def _state(self, id: str, values: Mapping[str, Any]) -> Any:
        # States of other versions may know more fields or fewer.
        known = {name: value for name, value in values.items() if name in self.noun.State.model_fields}
        return self.noun.partial_state({**known, "id": id})

    def _recorded(self, state: Any, declared: Mapping[str, Any]) -> dict[str, Any]:
        """Everything to record: the state, and what was declared but is no part of it."""
        return {**{name: value for name, value in declared.items() if name not in self.noun.State.model_fields}, **state.values()}

    def _outputs(self, state: Any, props: Wire) -> dict[str, Any]:
        given = engine.check(self.noun, from_pulumi(props)[0]).values
        return {**to_pulumi(self._recorded(state, given), ("id",)), **_ours(props), MANAGED: sorted(given)}

    def _context(self, props: Wire) -> Context:
        timeout = props.get(WAIT_TIMEOUT)
        title = self._title(props)
        return self.session.context(
            str(props.get(IDENTITY) or ""),
            float(timeout) if isinstance(timeout, int | float) else None,
            lambda line: self.tell(f"{title}: {line}"),
        )

    def _claim(self, olds: Wire, news: Wire, id: str) -> None:
        for props in (olds, news):
            if props.get(IDENTITY):
                self.session.claims.add(props[IDENTITY], id)

    def _title(self, props: Wire) -> str:
        return str(props.get(IDENTITY) or self.noun.title).rsplit("/", 1)[-1]
