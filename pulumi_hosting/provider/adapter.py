"""Pulumi's steps (check, diff, create, read, update, delete), answered by the planner.

Takes and returns property values, whether they came through the dynamic provider or the plugin.
"""

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field

from pydantic import BaseModel

from pulumi_hosting.api.secrets import Secret, clean_text
from pulumi_hosting.client.exceptions import CallError, HostingError, InvalidInput, NotFound
from pulumi_hosting.exactly_once import purchase_journal
from pulumi_hosting.exactly_once.generation import ORDER_PREFIX
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import Checked, check, check_others, unsendable
from pulumi_hosting.planning.diff import diff, refuse_forbidden, shown_inputs
from pulumi_hosting.planning.plan import PlanOptions, plan, predict, same_as
from pulumi_hosting.planning.resolve_names import resolved
from pulumi_hosting.provider import conversion, keeping_paid, names, refusals, remarks, spending
from pulumi_hosting.provider.failures import WORDS, PartialFailure, defect
from pulumi_hosting.provider.names import PropertyValues, Props, camel
from pulumi_hosting.provider.provider_session import SESSION, ProviderSession, print_line
from pulumi_hosting.resources.base import AnyResource, State, plain
from pulumi_hosting.resources.powers import Remarked, Repeatable, Sandboxed, Validated, is_provisional
from pulumi_hosting.session import errors
from pulumi_hosting.session.request import Request


@dataclass(frozen=True)
class Adapter:
    """Serves one resource type. ``ids_may_change``: whether a read may bring another id than the one an
    update leaves (plugin), or not (dynamic).
    """

    resource: AnyResource
    session: ProviderSession = field(default=SESSION)
    info: Callable[[str], None] = field(default=print_line)
    warn: Callable[[str], None] | None = None
    announce: Callable[[str], None] | None = None
    """Gets lines on what is about to be charged, which those on what was charged replace; None: ``info``."""
    ids_may_change: bool = False
    urn: str | None = None
    """The resource's URN, where the engine tells it (plugin)."""
    timeout: float | None = None
    """Pulumi's ``custom_timeouts``: seconds to wait in this step, if the program sets no waiting time."""

    def __post_init__(self) -> None:
        self.session.tells(self.info)

    # --- before anything is done

    def check(self, olds: PropertyValues, news: PropertyValues) -> tuple[Props, dict[str, str]]:
        """Inputs in normal form (unknown ones as they came), and field → reason for those that are wrong."""
        self.session.has_entry(olds)
        beside, before = conversion.provider_fields(news), conversion.from_pulumi(olds)[0]
        raw, unknown = conversion.from_pulumi(news)
        if str(raw.get("server_id")).startswith(ORDER_PREFIX):  # only the order of the server is known
            unknown |= {"server_id"}
        checked = check(self.resource, raw, unknown)
        unsent, failures = {} if before else self._unsent(raw), dict(checked.failures)
        if not failures and self.resource.Inputs.resolved_fields(raw):
            try:
                named, failures = resolved(lambda: self._request(news), self.resource, checked.values, before)
                checked = check(self.resource, {**raw, **named}, unknown)
            except HostingError as error:  # nothing can be planned of a value that is not known
                failures = {"": str(error)}
        failures = unsent | failures | conversion.wrong_wait_timeout(beside)
        if beside.get(names.IDENTITY):
            beside[names.IDENTITY] = self.session.identity(
                str(beside[names.IDENTITY]), beside.get(names.ORGANIZATION)
            )
            if olds.get(names.IDENTITY) not in (None, beside[names.IDENTITY]):
                # a renamed resource keeps the identity that its object's tag is made of
                beside |= {names.IDENTITY: olds[names.IDENTITY], names.DECLARED: beside[names.IDENTITY]}
        props, identity = {**news, **beside}, str(beside.get(names.IDENTITY) or "")
        wanted = None if before else lambda: checked.values
        self.session.replacements.checked(self._label(props), self.resource, identity, wanted)
        if not failures:
            failures = self._refusals(before, checked, props)
        elif self.ids_may_change and failures.keys() == unsent.keys():
            there = refusals.of_that_name(self.session, self.resource, self._request(props), checked.known)
            failures = self._stopped(props, there) if there else failures
        elif not before:
            failures = {**self._refused_beside(failures, raw, unknown, props), **failures}
        later = {key: value for key, value in news.items() if conversion.field_of(key) in unknown}
        inputs, values = checked.known, checked.raw
        if inputs is not None:
            values = {name: getattr(inputs, name) for name in inputs.model_fields_set}
        shown = {
            conversion.property_of(name, isinstance(value, list)): plain(value)
            if isinstance(value, BaseModel | Secret)
            else value
            for name, value in values.items()
            if value is not None
        }
        return {**shown, **later, **beside}, failures

    def _unsent(self, values: PropertyValues) -> dict[str, str]:
        """Field → reason, for what the creation cannot send. What is adopted is not sent."""
        return {} if self.resource.Inputs.adopted_by(values) else unsendable(self.resource, values)

    def _stopped(self, props: PropertyValues, error: errors.ResourceConflict) -> dict[str, str]:
        """What stands in the way is a refusal; for the native provider a warning in the preview, so that
        ``preview --import-file`` gets that far. The creation stops anyway."""
        if self.session.strict or not self.ids_may_change:
            return {"": str(error)}
        self.session.stopped[self._label(props)] = str(error)
        return {}

    def _refused_beside(
        self, failures: Collection[str], raw: PropertyValues, unknown: Collection[str], props: PropertyValues
    ) -> dict[str, str]:
        """Field → reason, for what the account tells of a new declaration's fields that are not wrong
        already, so that one run names all. Nothing where the account cannot be asked.
        """
        resource, others = self.resource, check_others(self.resource, raw, unknown, failures)
        is_open = others.known is None or others.unknown & resource.Inputs.deciding("order")
        with suppress(HostingError):
            if isinstance(resource, Validated) and not is_open and self.session.unreachable() is None:
                return resource.validate(self._request(props), others.values, frozenset(others.values))
        return {}

    def _refusals(self, before: PropertyValues, desired: Checked, props: PropertyValues) -> dict[str, str]:
        """Plan what is new in a declaration, show it, and say field → reason why it cannot be done."""
        request, budget, refusal = self._request(props), self.session.budget, None
        try:
            options = PlanOptions(unreachable="warn", reach=self.session.unreachable)
            planned = plan(request, self.resource, desired, recorded=before, options=options)
            if planned.takeover and desired.known:
                apply.refuse_taken(request, self.resource, desired.known, planned.takeover.state)
        except errors.ResourceConflict as error:
            return self._stopped(props, error)
        # a scope is missing; what would be taken over is not there, or not what is declared
        except errors.ResourceError as error:
            return {"": str(error)}
        if planned.unchecked is not None:
            refusal = self._not_checked(props, planned.unchecked)
        elif not before:
            remarks.tell_replacement(self.session, request, self.session.replacements.of(self._label(props)))
        for remark in planned.remarks:
            spending.show_unpriced(budget, request, self.resource, remark)
        if planned.takeover is not None:
            refusal = spending.show_takeover(budget, request, planned.takeover)
        elif planned.cost is not None:
            refusal = spending.show_price(budget, request, planned.cost, self.session.replacements)
        return {**planned.refusals, **({"": refusal} if refusal else {})}

    def _not_checked(self, props: PropertyValues, error: HostingError) -> str | None:
        """Warn once that the account cannot be read; a refusal where it must be."""
        line = f"prices and limits were not checked: {error}"
        if why := self.session.budget.limited or ("strict is set" if self.session.strict else None):
            return f"{line.rstrip('.')}. ({why}, so nothing is planned without the account.)"
        if error is not self.session.unreachable() or self.session.first_warning():
            self._request(props).warn(line)
        return None

    def diff(self, id: str, olds: PropertyValues, news: PropertyValues) -> conversion.WireDiff:
        """Compare outputs with inputs."""
        self._claim(olds, news, id)
        values, state = self._recorded(id, olds)
        unreachable = refusals.must_be_of_this_key(self.session, self.resource, state, olds)
        if unreachable is not None and (refusal := self._not_checked(olds, unreachable)):
            raise errors.ResourceError(refusal)
        if (
            state.mode == "test"
            and isinstance(self.resource, Sandboxed)
            # this machine's time if the service cannot be reached
            and self.resource.has_lapsed(
                state, self.session.clock.now() if unreachable else self._request(news).service_now()
            )
        ):
            self.info(f"{self._name(news)}: the sandbox server {id} has expired and is made again")
            return conversion.WireDiff(True, True, {"createdAt": "UPDATE_REPLACE"})
        checked = check(self.resource, *conversion.from_pulumi(news))
        options = PlanOptions(reach=self.session.unreachable)
        planned = plan(self._request(news), self.resource, checked, state, recorded=values, options=options)
        found = planned.changes
        identity = str(news.get(names.IDENTITY) or "")
        replacements, label = self.session.replacements, self._label(news)
        replacements.compared(label, self.resource, state, olds.get(names.ENTRY), identity, found)
        if found.replaces and checked.unknown:
            # it may be deleted with what it depends on, before it is checked
            replacements.checked(label, self.resource, identity, lambda: checked.values, known=False)
        properties = {
            camel(change.field): ("ADD" if change.before is None else "UPDATE")
            + ("_REPLACE" if change.replaces else "")
            for change in found.changes
        }
        properties |= remarks.tell(
            self.session, self._request(news), self.resource, state, planned, checked.values
        )
        changes = planned.action != "unchanged" or bool(properties)
        return conversion.WireDiff(changes, self.resource.replacement == "free", properties)

    def preview_create(self, props: PropertyValues) -> Props:
        """The outputs that are known before creating, the price among them; the others are unknown."""
        if why := self.session.stopped.get(self._label(props)):
            self._request(props).warn(f"the creation will stop: {why}")
        checked = check(self.resource, *conversion.from_pulumi(props))
        known, unknown, fields = checked.values, checked.unknown, self.resource.State.model_fields
        outputs: Props = {
            **{camel(name): conversion.UNKNOWN for name in fields if name != "id"},
            **conversion.to_pulumi(known),
            **(conversion.to_pulumi(predict(self.resource, checked.known, None)) if checked.known else {}),
            **{camel(name): conversion.UNKNOWN for name in unknown},
            "mode": self._request(props).mode,
        }
        cost = self.session.budget.planned(str(props.get(names.IDENTITY) or ""))
        if cost is not None and "charged" in fields:
            outputs["charged"] = str(cost.amount)
        return {**outputs, **conversion.provider_fields(props), names.MANAGED: sorted({*known, *unknown})}

    def preview_update(self, id: str, olds: PropertyValues, news: PropertyValues) -> Props:
        """The outputs after an update, as far as they are known before it."""
        checked = check(self.resource, *conversion.from_pulumi(news))
        values, state = self._recorded(id, olds)
        planned = plan(self._request(news), self.resource, checked, state, recorded=values)
        refuse_forbidden(self.resource, state, planned.changes)
        predicted = state.shown() if planned.predicted is None else planned.predicted
        uncertain = state.shown().keys() - predicted.keys()
        if keeping_paid.is_planned(self.session.budget, self._request(news)):
            uncertain |= {"next_due_at", "expires_at"} & state.shown().keys()
        return {
            **conversion.outputs_of(
                self.resource, state.model_copy(update=predicted).values(), checked.values
            ),
            **conversion.to_pulumi(checked.values),
            **{camel(name): conversion.UNKNOWN for name in (*checked.unknown, *uncertain)},
            **conversion.provider_fields(news),
            names.MANAGED: sorted({*checked.values, *checked.unknown}),
        }

    # --- doing

    def create(self, props: PropertyValues) -> tuple[str, Props]:
        """Id and outputs. Raises :class:`PartialFailure` when something went wrong after the object, or its
        order, was there.
        """
        self.session.must_be_able_to_write(creating=True)
        request, raw = self._request(props), conversion.from_pulumi(props)[0]
        checked = check(self.resource, raw)
        if failures := {**self._unsent(raw), **checked.failures}:
            raise InvalidInput(failures, self._name(props))
        inputs, budget = checked.inputs, self.session.budget
        spending.must_be_affordable(budget, request, self.resource, inputs)
        request.approve = lambda: spending.approve(budget, request, self.resource, inputs)
        bought = spending.PaidCreation(budget, request, self.session.replacements)
        interrupted = purchase_journal.interrupted(request, self.resource.kind)
        failed: Exception | None = None
        try:
            state = apply.create(request, self.resource, inputs, bought.save)
            bought.save(state)
        except Exception as error:  # whatever goes wrong now: what was paid for must be remembered
            if bought.made is None:
                raise
            state, failed = bought.made, error
        held, adopted = (self.resource.kind, state.id), self.resource.Inputs.adopted_by(checked.values)
        entry = self.session.replacements.created(held, request.identity, request.label, adopted)
        outputs = {**self._outputs(state, props, checked.values), names.ENTRY: entry}
        spending.show_unreported(request, interrupted, state)
        purchase_journal.reported(request.unreported)
        if failed is None and bought.exceeded is None:
            return state.id, outputs
        exists = f"{spending.exists(request, self.resource, state)}, but: "
        if failed is None:
            raise PartialFailure(state.id, outputs, [f"{exists}{bought.exceeded}"], refresh=False)
        failure = self._failure(state, outputs, failed)
        if not failure.refresh:
            next_step, what = f"{WORDS.apply}, which sets the rest", failure.reasons[0]
            if isinstance(failed, CallError):
                failed.subject = ""
                what = f"{failed.summary}. {errors.and_then(failed, next_step)}"
            elif not isinstance(failed, errors.WaitTimeout):  # that says to run again
                what = f"{what}; then {next_step}"
            failure.reasons = [exists + what]
        failure.reasons += [bought.exceeded] if bought.exceeded else []
        raise failure from failed

    def read(
        self, id: str, olds: PropertyValues, inputs: PropertyValues | None = None
    ) -> tuple[str, Props, Props] | None:
        """Id, outputs and live inputs; None when gone. Without ``olds`` it is an import: every input that
        shows is taken for managed.
        """
        # Before anything is said of the object: on another account there is none of this id, or another's.
        # Whether the key is refused, and whose it is, is asked once, not by every read.
        if self.session.unreachable() is None:
            refusals.must_be_its_account(self.session, self.resource, id, olds)
        self._claim(olds, olds, id)
        values, last = self._recorded(id, olds)
        request = self._request(olds)
        with refusals.advising(self.resource, olds, self.urn):
            state = apply.read(request, self.resource, last)
        if state is None:
            self._must_be_gone(id, olds)
            return None
        latest = conversion.from_pulumi(inputs or {})[0]
        recorded = [*olds.get(names.MANAGED, ())] or shown_inputs(self.resource, state)
        managed, declared = conversion.declared_lately(self.resource, recorded, values, latest)
        beside = conversion.provider_fields(olds)
        kept = {**beside, **conversion.entry_stamp(olds), names.MANAGED: managed}
        if self.ids_may_change and is_provisional(self.resource, state):
            # what is recorded of the order while it is not known what it has become
            outputs = {**conversion.outputs_of(self.resource, state.values(), declared), **kept}
            try:
                with refusals.advising(self.resource, olds, self.urn):
                    state = apply.wait(request, self.resource, state)
            except HostingError as error:
                raise self._failure(state, outputs, error, inputs) from None
        self.session.record_mode(state.mode)
        self.session.replacements.read(self._label(olds), self.resource, state, olds.get(names.ENTRY))
        if on := olds.get(names.ACCOUNT) or (
            None if names.MANAGED in olds else refusals.account_of(self.session)
        ):
            kept[names.ACCOUNT] = on
        now = state.values()
        live = conversion.to_pulumi(conversion.live_inputs(self.resource, now, managed, declared))
        return state.id, {**conversion.outputs_of(self.resource, now, declared), **kept}, {**live, **beside}

    def update(self, id: str, olds: PropertyValues, news: PropertyValues) -> Props:
        self.session.must_be_able_to_write()
        refusals.must_be_its_account(self.session, self.resource, id, olds)
        self._claim(olds, news, id)
        values, state = self._recorded(id, olds)
        checked = check(self.resource, conversion.from_pulumi(news)[0])
        if checked.failures:
            raise InvalidInput(checked.failures, self._name(news))
        given = checked.values
        if self.ids_may_change and is_provisional(self.resource, state):
            reason = f"{self.resource.title} {id} is not there yet. Next: run again; it is waited for"
            raise PartialFailure(id, olds, [reason], refresh=True)
        request = self._request(news)
        found = diff(self.resource, values, given, same=same_as(request, self.resource))
        refuse_forbidden(self.resource, state, found)
        prepaid = self.resource if isinstance(self.resource, Remarked) else None
        if prepaid and not (found.fields or prepaid.is_gone(request, state)):
            # its time was over: no input ends that, and what the account shows is recorded
            state = apply.read(request, self.resource, state) or state
        if found.fields or isinstance(self.resource, Repeatable):
            done: list[State] = []
            request.save = done.append
            try:
                state = apply.update(request, self.resource, state, checked.inputs, found.fields)
            except errors.NotOurs as error:
                raise refusals.advised(self.resource, error, olds, self.urn) from None
            except HostingError as error:
                if (
                    isinstance(error, NotFound | errors.ResourceError)
                    and not isinstance(error, errors.OrderFailed)  # it says how the order ended
                    and apply.read(request, self.resource, state) is None
                ):
                    raise errors.ResourceError(
                        f"{self.resource.title} {id} is gone: it was deleted outside of this program. Next: "
                        "pulumi up --refresh makes it again"
                    ) from None
                if not done:
                    raise
                # What was declared beside the state is recorded once it was acted on, and that is not known
                # here.
                outputs = {**olds, **conversion.outputs_of(self.resource, done[-1].values(), {})}
                raise self._failure(done[-1], outputs, error) from None
        outputs = {**self._outputs(state, news, given), **conversion.entry_stamp(olds)}
        try:
            kept = keeping_paid.renewed(self.session.budget, request, self.resource, state, given)
        except HostingError as error:
            raise self._failure(state, outputs, error) from None
        return {**self._outputs(kept, news, given), **conversion.entry_stamp(olds)}

    def delete(self, id: str, olds: PropertyValues) -> None:
        """Delete the object ``id``, or raise. It stays, with a line that names it and its price, only where
        another entry of the stack has it."""
        refusals.must_be_id(self.resource, id, olds, self.urn)
        try:
            self._delete(id, olds)
        except refusals.NotReplaced:
            raise  # what goes with it is in the state, with the newer entry
        except HostingError as error:
            if left := self.resource.after_failed_deletion(self._request(olds), id, error):
                self._request(olds).warn(left)
            raise

    def _delete(self, id: str, olds: PropertyValues) -> None:
        self.session.must_be_able_to_write()
        refusals.must_be_its_account(self.session, self.resource, id, olds)
        replacements, kind = self.session.replacements, self.resource.kind
        if other := replacements.other((kind, id), olds.get(names.ENTRY)):
            if other.replaces(olds.get(names.IDENTITY), self._label(olds)):
                raise refusals.not_replaced(self.resource, id, olds, self.urn, adopted=other.adopted)
            self._request(olds).warn(refusals.stays(self.resource, id, olds))
            return
        self._claim(olds, olds, id)
        chosen = id if replacements.has_newer(self._label(olds), id) else ""
        try:
            state, request = self._recorded(id, olds)[1], self._request(olds)
            if awaited := replacements.awaited(self.resource, id, self._label(olds)):
                deleted = replacements.deleted_of_server(id)
                spending.must_be_payable(self.session.budget, request, awaited, self.resource, state, deleted)
            apply.delete(request, self.resource, state)
            replacements.deleted(self.resource, state)
            self.session.due.pop((kind, id), None)
        except errors.NotOurs as error:
            if not replacements.is_recorded((kind, error.id), error.tag, olds.get(names.ENTRY)):
                raise refusals.advised(self.resource, error, olds, self.urn, chosen) from None
            self._request(olds).warn(refusals.stays(self.resource, id, olds))
        except errors.StillOrdered as ordered:
            raise refusals.advised(self.resource, ordered, olds, self.urn, chosen) from None

    # --- parts

    def _must_be_gone(self, id: str, olds: PropertyValues) -> None:
        """Raise if an object that is not there shows a mistake: the wrong account, or a wrong id."""
        refusals.must_be_its_account(self.session, self.resource, id, olds)
        if names.MANAGED not in olds:  # an import or a lookup: "gone" would go unnoticed
            raise errors.NoSuchObject(
                f"there is no {self.resource.title} with id {clean_text(id, 80)} on this account. Next: "
                "correct the id"
            )

    def _failure(
        self, state: State, outputs: PropertyValues, error: Exception, inputs: PropertyValues | None = None
    ) -> PartialFailure:
        reason = str(error) if isinstance(error, HostingError) else defect(error)
        return PartialFailure(
            state.id, outputs, [reason], refresh=is_provisional(self.resource, state), inputs=inputs
        )

    def _recorded(self, id: str, olds: PropertyValues) -> tuple[Props, State]:
        """What an entry records, and the state in it. Raises ``ResourceError`` for a damaged id."""
        refusals.must_be_id(self.resource, id, olds, self.urn)
        values, state = conversion.recorded(self.resource, id, olds)
        self.session.record_mode(state.mode)
        return values, state

    def _outputs(self, state: State, props: PropertyValues, given: PropertyValues) -> Props:
        shown = state.values()
        self.session.falls_due(self.resource, shown)
        return {
            **conversion.outputs_of(self.resource, shown, given),
            **conversion.provider_fields(props),
            names.MANAGED: sorted(given),
            names.ACCOUNT: refusals.account_of(self.session),
        }

    def _request(self, props: PropertyValues) -> Request:
        session, kind, warn, name = self.session, self.resource.kind, self.warn, self._name(props)
        identity, timeout = str(props.get(names.IDENTITY) or ""), props.get(names.WAIT_TIMEOUT)

        def info(line: str) -> None:
            self.info(f"{name}: {line}")

        session.tells(info)
        announce = self.announce
        return Request(
            session,
            identity,
            kind,
            adopts=props.get("adoptId") is not None,
            owned=session.ownership.of_kind(kind).of(identity),
            stays=lambda kind, id: session.replacements.other((kind, id), "") is not None,
            wait_timeout=(float(timeout) if isinstance(timeout, int | float) else self.timeout) or 600.0,
            info=info,
            warn=lambda line: warn(f"{name}: {line}") if warn else info(f"warning: {line}"),
            credited=session.credited,
            label=self._label(props),
            announce=announce and (lambda line: announce(f"{name}: {line}")),
            parent=self.session.parent(props, is_urn=self.urn is not None),
        )

    def _claim(self, olds: PropertyValues, news: PropertyValues, id: str) -> None:
        """Record whose the object is, under the identity of before too: a renamed resource keeps it."""
        self.session.has_entry(olds)
        if olds.get("takenOver"):
            return  # it is shared: no resource has it to itself
        ownership = self.session.ownership.of_kind(self.resource.kind)
        for props in (olds, news):
            if props.get(names.IDENTITY):
                ownership.add(props[names.IDENTITY], id, self._label(props))

    def _label(self, props: PropertyValues) -> str:
        return refusals.label_of(props, self.urn)

    def _name(self, props: PropertyValues) -> str:
        return refusals.name_of(self.resource, props, self.urn)
