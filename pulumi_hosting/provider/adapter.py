"""Pulumi's questions, answered by the engine of ``resources``. Knows wire values and nothing of how they
arrive (dynamic or plugin).
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.exceptions import (
    ApiError,
    CallError,
    HostingError,
    InvalidInput,
    NotFound,
    TransportError,
)
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import Checked, check
from pulumi_hosting.planning.diff import diff, live_inputs, refuse_forbidden
from pulumi_hosting.planning.plan import PlanOptions, plan, same_as, takeover_of
from pulumi_hosting.provider.conversion import (
    ACCOUNT,
    ENTRY,
    IDENTITY,
    MANAGED,
    ORGANIZATION,
    UNKNOWN,
    WAIT_TIMEOUT,
    PropertyChange,
    WireDiff,
    camel,
    from_pulumi,
    is_unknown,
    to_pulumi,
)
from pulumi_hosting.provider.half_way import Partial
from pulumi_hosting.provider.names import NAME, class_of, dynamic_token
from pulumi_hosting.provider.provider_session import SESSION, ProviderSession
from pulumi_hosting.resources.base import Resource, Takeover, plain
from pulumi_hosting.resources.powers import Priced, Remarked, Sandboxed, is_provisional, recorded_mode
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import ResourceError, TakenOver
from pulumi_hosting.session.key_owner import account
from pulumi_hosting.session.request import Request

PropertyValues = Mapping[str, Any]


def _print(line: str) -> None:
    # Pulumi shows a provider's output as information about the stack. One write: lines of several threads
    # must not run together.
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _ours(props: PropertyValues) -> dict[str, Any]:
    """What travels beside the resource's own fields, and stays with the resource."""
    return {key: props[key] for key in (IDENTITY, ORGANIZATION, WAIT_TIMEOUT) if props.get(key) is not None}


def _entry(olds: PropertyValues) -> dict[str, Any]:
    """The stamp of an entry of the stack's state: made once, kept for ever."""
    return {ENTRY: olds[ENTRY]} if olds.get(ENTRY) else {}


@dataclass(frozen=True)
class Adapter:
    """Serves one resource type. ``ids_may_change``: whether a read may bring another id than the one an
    update leaves (plugin), or not (dynamic).
    """

    resource: Resource[Any, Any]
    session: ProviderSession = field(default=SESSION)
    info: Callable[[str], None] = field(default=_print)
    warn: Callable[[str], None] | None = None
    ids_may_change: bool = False
    urn: str | None = None
    """The resource's URN, where the engine tells it (plugin)."""

    # --- before anything is done

    def check(self, olds: PropertyValues, news: PropertyValues) -> tuple[dict[str, Any], dict[str, str]]:
        """Inputs in normal form (unknown ones as they came), and field → reason for those that are wrong."""
        raw, unknown = from_pulumi(news)
        checked = check(self.resource, raw, unknown)
        failures = dict(checked.failures)
        ours = _ours(news)
        timeout = ours.get(WAIT_TIMEOUT)
        if (
            timeout is not None
            and not is_unknown(timeout)
            and not (isinstance(timeout, int | float) and 0 < timeout <= 86400)
        ):
            failures["wait_timeout"] = "must be seconds: more than 0 and at most 86400"
        if olds.get(IDENTITY):
            # a renamed resource keeps the identity that its object's tag is made of
            ours[IDENTITY] = olds[IDENTITY]
        elif ours.get(IDENTITY):
            ours[IDENTITY] = self.session.identity(str(ours[IDENTITY]), ours.get(ORGANIZATION))
        self.session.entries.checked(str(ours.get(IDENTITY) or ""))
        if not failures:
            failures.update(self._refusals(olds, checked, {**news, **ours}))
        later = {camel(name): news[camel(name)] for name in unknown}
        inputs = checked.known
        values = (
            checked.raw
            if inputs is None
            else {name: getattr(inputs, name) for name in inputs.model_fields_set}
        )
        shown = {
            camel(name): plain(value) if isinstance(value, BaseModel | Secret) else value
            for name, value in values.items()
        }
        return {
            **{name: value for name, value in shown.items() if value is not None},
            **later,
            **ours,
        }, failures

    def _refusals(self, olds: PropertyValues, desired: Checked, props: PropertyValues) -> dict[str, str]:
        """Plan what is new in a declaration, show it, and say field → reason why it cannot be done."""
        request = self._request(props)
        try:
            options = PlanOptions(unreachable="warn", reach=self.session.unreachable)
            planned = plan(request, self.resource, desired, recorded=from_pulumi(olds)[0], options=options)
        # a scope is missing; what would be taken over is not there, or not what is declared
        except ResourceError as error:
            return {"": str(error)}
        if planned.unchecked is not None:
            return self._not_checked(props, planned.unchecked)
        for remark in planned.remarks:
            request.info(remark)
        if planned.refusals:
            return dict(planned.refusals)
        if planned.takeover is not None:
            return self._announce(request, planned.takeover)
        return {} if planned.cost is None else self._price(request, planned.cost)

    def _not_checked(self, props: PropertyValues, error: HostingError) -> dict[str, str]:
        """A failure where the account must have been asked, else one warning."""
        line = f"prices and limits were not checked: {error}"
        if demanding := self._demands_answers():
            return {"": f"{line.rstrip('.')}. ({demanding}, so nothing is planned without the account.)"}
        if error is not self.session.unreachable() or self.session.first_warning():
            self._warn(props, line)
        return {}

    def _demands_answers(self) -> str | None:
        if self.session.settings.max_charge is not None:
            return f"maxCharge is {self.session.settings.max_charge}"
        return "strict is set" if self.session.settings.strict else None

    def _announce(self, request: Request, taken: Takeover) -> dict[str, str]:
        """Say what is taken over instead of being made: it costs nothing, and nothing is counted."""
        request.info(taken.announcement(request.service_now()))
        refusal = self.session.budget.found(
            request.identity, Cost(Decimal("0.00"), taken.currency or "", taken.reason)
        )
        return {"": refusal} if refusal else {}

    def _price(self, request: Request, cost: Cost) -> dict[str, str]:
        """Say what making it charges, and refuse what is more than the run may charge."""
        if refusal := self.session.budget.refusal(request.identity, cost):
            return {"": refusal}
        total = self.session.budget.total(cost.currency)
        charges = "would charge" if request.client.is_test_key else "charges"
        line = (
            f"{charges} {cost.amount} {cost.currency} now ({cost.what}); this run so far {total} "
            f"{cost.currency}"
        )
        balance = self.session.budget.opening(cost)
        if balance is None:
            request.info(line)
        elif total <= balance:
            request.info(f"{line}, the balance of {balance} covers it")
        else:
            request.warn(
                f"{line}, more than the balance of {balance}. Next: top up {total - balance} {cost.currency}"
            )
        return {}

    def diff(self, id: str, olds: PropertyValues, news: PropertyValues) -> WireDiff:
        """Compare outputs with inputs."""
        self._claim(olds, news, id)
        raw, unknown = from_pulumi(news)
        checked = check(self.resource, raw, unknown)
        values = self._values(id, olds)
        state = self._state(id, values)
        self._must_be_of_this_key(state, olds)
        if (
            state.mode == "test"
            and isinstance(self.resource, Sandboxed)
            and self.resource.has_lapsed(state, self._service_now(news))
        ):
            self.info(f"{self._title(news)}: the sandbox server {id} has expired and is made again")
            return WireDiff(True, ("createdAt",), True, {"createdAt": PropertyChange("update", True)})
        planned = plan(self._request(news), self.resource, checked, state, recorded=values)
        found = planned.changes
        identity = str(news.get(IDENTITY) or "")
        self.session.entries.compared(
            (self.resource.kind, id), olds.get(ENTRY), identity, kept=not found.replaces
        )
        for remark in planned.remarks:
            self.info(f"{self._title(news)}: {remark}")
        self._remark(state, news)
        properties = {
            camel(change.field): PropertyChange("add" if change.before is None else "update", change.replaces)
            for change in found.changes
        }
        return WireDiff(
            bool(found), tuple(map(camel, found.replaces)), self.resource.replacement == "free", properties
        )

    def _service_now(self, props: PropertyValues) -> datetime:
        """The service's time; this machine's where the service cannot be asked."""
        return self.session.clock.now() if self.session.unreachable() else self._request(props).service_now()

    def _remark(self, state: Any, props: PropertyValues) -> None:
        """Say what the account shows of an object whatever the program declares. Without a key, or an
        answer, there is nothing to say.
        """
        if not isinstance(self.resource, Remarked):
            return
        with suppress(HostingError):
            request = self._request(props)
            for remark in self.resource.remarks(request, state):
                request.warn(remark)

    def preview_create(self, props: PropertyValues) -> dict[str, Any]:
        """The outputs that are known before creating, the price among them; the others are unknown."""
        desired, unknown = from_pulumi(props)
        known = check(self.resource, desired, unknown).values
        outputs: dict[str, Any] = {
            camel(name): UNKNOWN for name in self.resource.State.model_fields if name != "id"
        }
        outputs |= (
            to_pulumi(known)
            | {camel(name): UNKNOWN for name in unknown}
            | {"mode": self._request(props).mode}
        )
        cost = self.session.budget.planned(str(props.get(IDENTITY) or ""))
        if cost is not None and "charged" in self.resource.State.model_fields:
            outputs["charged"] = str(cost.amount)
        return {**outputs, **_ours(props), MANAGED: sorted({*known, *unknown})}

    def preview_update(self, id: str, olds: PropertyValues, news: PropertyValues) -> dict[str, Any]:
        """The outputs after an update, as far as they are known before it."""
        desired, unknown = from_pulumi(news)
        checked = check(self.resource, desired, unknown)
        values = self._values(id, olds)
        state = self._state(id, values)
        planned = plan(self._request(news), self.resource, checked, state, recorded=values)
        refuse_forbidden(self.resource, state, planned.changes)
        outputs = {**self._recorded(state, checked.values), **to_pulumi(checked.values)}
        outputs |= {camel(name): UNKNOWN for name in unknown}
        return {**outputs, **_ours(news), MANAGED: sorted({*checked.values, *unknown})}

    # --- doing

    def create(self, props: PropertyValues) -> tuple[str, dict[str, Any]]:
        """Id and outputs. Raises :class:`Partial` when something went wrong after the object, or its
        order, was there.
        """
        self.session.must_be_able_to_write(creating=True)
        request = self._request(props)
        checked = check(self.resource, from_pulumi(props)[0])
        if checked.failures:
            raise InvalidInput(checked.failures, self._title(props))
        inputs = checked.inputs
        self._must_be_affordable(request, inputs)
        request.approve = lambda cost: self._must_be_within_the_limit(request, cost)
        made: list[Any] = []
        try:
            state = apply.create(request, self.resource, inputs, made.append)
        except Exception as error:  # whatever goes wrong now: what was paid for must be remembered
            if not made:
                raise
            partial = self._partial(made[-1], self._created(made[-1], props, inputs.given()), error)
            if not partial.refresh:
                next_step = "pulumi up, which sets the rest"
                what = (
                    (f"{error.summary}. Next: {next_step}")
                    if isinstance(error, CallError)
                    else (f"{partial.reasons[0]}; then {next_step}")
                )
                partial.reasons = [f"{self._there(request, made[-1])}, but: {what}"]
            partial.reasons += self._exceeded(request, made[-1])
            raise partial from None
        outputs = self._created(state, props, inputs.given())
        if exceeded := self._exceeded(request, state):
            raise Partial(
                state.id, outputs, [(f"{self._there(request, state)}, but: {exceeded[0]}")], refresh=False
            )
        return state.id, outputs

    def _there(self, request: Request, state: Any) -> str:
        """That the object exists, and what it cost."""
        charged = None if state.id in request.taken_over else getattr(state, "charged", None)
        currency = getattr(state, "currency", None) or ""
        return f"{self.resource.title} {state.id} exists" + (
            f" and was charged {charged} {currency}".rstrip() if charged is not None else ""
        )

    def _exceeded(self, request: Request, state: Any) -> list[str]:
        """Book what the order cost, and say so where that is more than was announced."""
        charged = getattr(state, "charged", None)
        exceeded = (
            self.session.budget.charged(request.identity, Decimal(charged)) if charged is not None else None
        )
        return (
            [(f"{exceeded}; nothing more is ordered in this run. Next: look at the invoice, then run again")]
            if exceeded
            else []
        )

    def _created(self, state: Any, props: PropertyValues, given: Mapping[str, Any]) -> dict[str, Any]:
        """Outputs of a new entry of the stack's state."""
        entry = self.session.entries.new()
        self.session.entries.created((self.resource.kind, state.id), entry, str(props.get(IDENTITY) or ""))
        return {**self._outputs(state, props, given), ENTRY: entry}

    def read(
        self, id: str, olds: PropertyValues, inputs: PropertyValues | None = None
    ) -> tuple[str, dict[str, Any], dict[str, Any]] | None:
        """Id, outputs and live inputs; None when gone. Without ``olds`` it is an import: every input that
        shows is taken for managed.
        """
        self._claim(olds, olds, id)
        values = self._values(id, olds)
        last = self._state(id, values)
        request = self._request(olds)
        state = apply.read(request, self.resource, last)
        if state is None:
            self._must_be_its_account(id, olds)
            return None
        # What was declared since, and made no difference, is among the inputs alone.
        since = from_pulumi(inputs or {})[0]
        managed = [name for name in olds.get(MANAGED, ()) if isinstance(name, str)] or self._shown_inputs(
            state
        )
        managed = sorted({*managed, *(name for name in since if name in self.resource.Inputs.model_fields)})
        declared = {name: values.get(name, since.get(name)) for name in managed}
        if self.ids_may_change and is_provisional(self.resource, state):
            try:
                state = apply.wait(request, self.resource, state)
            except HostingError as error:
                outputs = {**self._recorded(state, declared), **_ours(olds), **_entry(olds), MANAGED: managed}
                raise self._partial(state, outputs, error, inputs) from None
        self.session.saw(state.mode)
        self.session.entries.read(
            (self.resource.kind, state.id), olds.get(ENTRY), getattr(state, "ownership_tag", None)
        )
        live = to_pulumi(live_inputs(self.resource, state, managed, declared))
        kept = _ours(olds)
        on = olds.get(ACCOUNT) or (None if MANAGED in olds else self._account())
        outputs = {
            **self._recorded(state, declared),
            **kept,
            **_entry(olds),
            MANAGED: managed,
            **({ACCOUNT: on} if on else {}),
        }
        return state.id, outputs, {**live, **kept}

    def update(self, id: str, olds: PropertyValues, news: PropertyValues) -> dict[str, Any]:
        self.session.must_be_able_to_write()
        self._must_be_its_account(id, olds)
        self._claim(olds, news, id)
        values = self._values(id, olds)
        checked = check(self.resource, from_pulumi(news)[0])
        if checked.failures:
            raise InvalidInput(checked.failures, self._title(news))
        inputs, given = checked.inputs, checked.values
        state = self._state(id, values)
        if self.ids_may_change and is_provisional(self.resource, state):
            raise Partial(
                id,
                olds,
                [(f"{self.resource.title} {id} is not there yet. Next: run again; it is waited for")],
                refresh=True,
            )
        request = self._request(news)
        found = diff(self.resource, values, given, same=same_as(request, self.resource))
        refuse_forbidden(self.resource, state, found)
        if found.fields:
            done: list[Any] = []
            request.save = done.append
            try:
                state = apply.update(request, self.resource, state, inputs, found.fields)
            except TakenOver as taken:
                raise self._advised(taken, olds) from None
            except HostingError as error:
                if (
                    isinstance(error, NotFound | ResourceError)
                    and apply.read(request, self.resource, state) is None
                ):
                    raise ResourceError(
                        f"{self.resource.title} {id} is gone: it was deleted outside of this program. Next: "
                        f"pulumi up --refresh makes it again"
                    ) from None
                if not done:
                    raise
                # What was declared beside the state is recorded once it was acted on, and that is not known
                # here.
                outputs = {
                    **olds,
                    **to_pulumi(done[-1].values(), ("id",), self.resource.State.nested_fields()),
                }
                raise self._partial(done[-1], outputs, error) from None
        return {**self._outputs(state, news, given), **_entry(olds)}

    def delete(self, id: str, olds: PropertyValues) -> None:
        """Delete the object ``id``, or raise. It stays, with a line that names it and its price, only where
        another entry of the stack has it, or where another resource took it over."""
        try:
            self._delete(id, olds)
        except HostingError:
            if self.resource.after_failed_deletion:
                self._warn(olds, self.resource.after_failed_deletion)
            raise

    def _delete(self, id: str, olds: PropertyValues) -> None:
        self.session.must_be_able_to_write()
        self._must_be_its_account(id, olds)
        if other := self.session.entries.other((self.resource.kind, id), olds.get(ENTRY)):
            if other.created and other.identity == olds.get(IDENTITY):
                if self.resource.replacement == "once":
                    raise ResourceError(
                        f"{self.resource.title} {id} was not replaced: the API deletes none and sells a name "
                        f"once, so the creation took the "
                        "same one over; nothing was changed. Next: pulumi up, which removes the older of the "
                        "two entries from the state"
                    )
                raise ResourceError(
                    f"{self.resource.title} {id} was not replaced: without a refresh the creation found it "
                    f"and took it over; nothing was "
                    f"deleted. Next: pulumi up --refresh --target-replace '{self._urn(olds)}' "
                    f"--target-dependents"
                )
            self._warn(
                olds,
                f"{self.resource.title} {id}{self._price_tag(olds)} stays: another resource of "
                f"this stack has it",
            )
            return
        self._claim(olds, olds, id)
        try:
            apply.delete(self._request(olds), self.resource, self._state(id, self._values(id, olds)))
        except TakenOver as taken:
            if not self.session.entries.is_recorded(
                (self.resource.kind, taken.id), taken.tag, olds.get(ENTRY)
            ):
                raise self._advised(taken, olds) from None
            self._warn(
                olds,
                f"{self.resource.title} {id}{self._price_tag(olds)} stays: another resource of "
                f"this stack has it",
            )

    # --- parts

    def _must_be_affordable(self, request: Request, inputs: Any) -> None:
        budget = self.session.budget
        if getattr(inputs, "adopt_id", None) is not None or not isinstance(self.resource, Priced):
            return
        if stopped := budget.stopped:
            raise ResourceError(
                f"nothing more is ordered in this run: {stopped}. Next: look at the invoice, then run again"
            )
        if budget.limit is None:
            return
        cost = budget.planned(request.identity)
        if cost is None and (taken := takeover_of(request, self.resource, inputs)) is not None:
            budget.found(request.identity, Cost(Decimal("0.00"), taken.currency or "", taken.reason))
            return
        cost = cost or self.resource.cost(request, inputs.given())
        if cost is None and (refusal := budget.unpriced()):
            raise InvalidInput(
                {"max_charge": refusal}, f"{self.resource.title} {self._title({IDENTITY: request.identity})}"
            )
        if cost is not None:
            self._must_be_within_the_limit(request, cost)

    def _must_be_within_the_limit(self, request: Request, cost: Cost) -> None:
        """Book it, or raise ``InvalidInput``."""
        if refusal := self.session.budget.refusal(request.identity, cost):
            raise InvalidInput(
                {"max_charge": refusal}, f"{self.resource.title} {self._title({IDENTITY: request.identity})}"
            )

    def _must_be_of_this_key(self, state: Any, olds: PropertyValues) -> None:
        """Raise ``ResourceError`` where the key cannot be the one that the object was made with: it is
        simulated, or on another account.
        """
        made = recorded_mode(self.resource, state)
        if made == "test" and not self.session.client.is_test_key:
            raise ResourceError(
                f"{self.resource.title} {state.id} was made with a test key: nothing of it is real, and this "
                f"is a live key; nothing was done. "
                "Next: pulumi up, then pulumi destroy, both with the test key; then pulumi up with the live "
                "key"
            )
        if olds.get(ACCOUNT) is None:
            return
        if unreachable := self.session.unreachable():
            if failures := self._not_checked(olds, unreachable):
                raise ResourceError(failures[""])
            return
        try:
            self._must_be_its_account(state.id, olds)
        except (TransportError, ApiError) as error:
            if failures := self._not_checked(olds, error):
                raise ResourceError(failures[""]) from None

    def _partial(
        self, state: Any, outputs: PropertyValues, error: Exception, inputs: PropertyValues | None = None
    ) -> Partial:
        reason = (
            str(error)
            if isinstance(error, HostingError)
            else (f"the provider failed ({type(error).__name__}): a defect. Next: report it")
        )
        return Partial(
            state.id, outputs, [reason], refresh=is_provisional(self.resource, state), inputs=inputs
        )

    def _values(self, id: str, olds: PropertyValues) -> dict[str, Any]:
        return {**from_pulumi(olds, self.resource.State.nested_fields())[0], "id": id}

    def _state(self, id: str, values: Mapping[str, Any]) -> Any:
        # States of other versions may know more fields or fewer.
        known = {name: value for name, value in values.items() if name in self.resource.State.model_fields}
        state = self.resource.State.partial({**known, "id": id})
        self.session.saw(state.mode)
        return state

    def _shown_inputs(self, state: Any) -> list[str]:
        """The inputs that the state of an object shows, for one that was not declared yet."""
        values = state.values()
        return sorted(
            name for name in self.resource.Inputs.model_fields if values.get(name) not in (None, "", [])
        )

    def _recorded(self, state: Any, declared: Mapping[str, Any]) -> dict[str, Any]:
        """Everything to record: the state, and what was declared but is no part of it."""
        beside = {
            name: value for name, value in declared.items() if name not in self.resource.State.model_fields
        }
        return to_pulumi({**beside, **state.values()}, ("id",), self.resource.State.nested_fields())

    def _outputs(self, state: Any, props: PropertyValues, given: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **self._recorded(state, given),
            **_ours(props),
            MANAGED: sorted(given),
            ACCOUNT: self._account(),
        }

    def _account(self) -> str:
        return str(account(self.session.client).account_id)

    def _must_be_its_account(self, id: str, olds: PropertyValues) -> None:
        """Raise ``ResourceError`` where the key is another account's than the object is on: what is not
        found there may well live.
        """
        if olds.get(ACCOUNT) not in (None, self._account()):
            raise ResourceError(
                f"{self.resource.title} {id} is on account {olds[ACCOUNT]}, and this is a key of account "
                f"{self._account()}; nothing was done. "
                "Next: use a key of its account"
            )

    def _request(self, props: PropertyValues) -> Request:
        timeout = props.get(WAIT_TIMEOUT)
        title = self._title(props)
        warn = self.warn
        return self.session.request(
            self.resource.kind,
            str(props.get(IDENTITY) or ""),
            float(timeout) if isinstance(timeout, int | float) else None,
            lambda line: self.info(f"{title}: {line}"),
            None if warn is None else lambda line: warn(f"{title}: {line}"),
        )

    def _claim(self, olds: PropertyValues, news: PropertyValues, id: str) -> None:
        if olds.get("takenOver"):
            return  # it is shared: no declaration has it to itself
        for props in (olds, news):
            if props.get(IDENTITY):
                self.session.ownership.of_kind(self.resource.kind).add(props[IDENTITY], id)

    def _warn(self, props: PropertyValues, line: str) -> None:
        if self.warn is None:
            self.info(f"warning: {self._title(props)}: {line}")
        else:
            self.warn(f"{self._title(props)}: {line}")

    def _urn(self, props: PropertyValues) -> str:
        """The URN, or a pattern that fits it alone where the engine does not tell it."""
        return self.urn or f"**{NAME}:{class_of(self.resource.kind)}::{self._title(props)}"

    def _advised(self, taken: TakenOver, olds: PropertyValues) -> ResourceError:
        """With how to leave the object to the run that took it over, and how to take it back."""
        parts = str(olds.get(IDENTITY) or "").partition(":")[2].split("/")
        urn, hint = self.urn, ""
        if urn is None and len(parts) == 4:
            project = parts[0].rpartition("@")[2]
            urn = f"urn:pulumi:{parts[1]}::{project}::{dynamic_token(self.resource.kind)}::{parts[3]}"
        elif urn is None:
            urn, hint = "URN", " (pulumi stack --show-urns names it)"
        return ResourceError(
            f"{taken}. Next: pulumi state delete '{urn}'{hint} leaves it to that run; to take it back, then "
            f"set adopt_id={taken.id} and "
            "run pulumi up"
        )

    @staticmethod
    def _price_tag(olds: PropertyValues) -> str:
        price = olds.get("recurringAmount") or olds.get("priceMonthly")
        return f" ({price} {olds.get('currency') or ''})".replace(" )", ")") if price else ""

    def _title(self, props: PropertyValues) -> str:
        return str(props.get(IDENTITY) or self.resource.title).rsplit("/", 1)[-1]
