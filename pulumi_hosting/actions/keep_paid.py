"""Keeping an object paid as its declaration says (``keep_paid``): one renewal in a run, where too little is
left of its paid time.

The renewal is the action that a person would carry out, so its key is made of the date that was seen: any
number of runs that see the same date pay once between them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from pulumi_hosting.actions.action import ActionOutcome, act
from pulumi_hosting.actions.domain_renew import DomainRenewal
from pulumi_hosting.actions.periods import moment
from pulumi_hosting.actions.renewal import AnyRenewal
from pulumi_hosting.actions.server_renew import ServerRenew
from pulumi_hosting.client.exceptions import ApiError, HostingError, InvalidInput
from pulumi_hosting.exactly_once import catalog_reads, purchase_journal
from pulumi_hosting.exactly_once.local_files import LockTimeout
from pulumi_hosting.exactly_once.payments import Payment
from pulumi_hosting.planning.paid_reads import paid_time_of
from pulumi_hosting.resources.base import AnyResource, State
from pulumi_hosting.resources.powers import Remarked
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import Failed, KeyLacksScope, ResourceError
from pulumi_hosting.session.prepaid import Prepaid
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text, duration

_ACTIONS: Mapping[str, AnyRenewal] = {"server": ServerRenew(), "domain": DomainRenewal()}
_LAST_HOUR = timedelta(hours=1)  # the service renews in it, where auto-renew is on


@dataclass(frozen=True, slots=True)
class Renewal:
    """A renewal that a declaration asks for now. ``inputs``: of its ``action``. ``renews``: the declared
    ``auto_renew``."""

    action: AnyRenewal
    inputs: Any
    renews: object

    @property
    def date(self) -> str:
        """The field of the state that it moves."""
        return self.action.date

    def plan(self, request: Request, approve: Callable[[Cost | None], None]) -> ActionOutcome | None:
        """What it would do. None if it is not to be done, with a warning that says why. Sends no write."""
        return self._carried_out(request, approve, dry_run=True)

    def carry_out(self, request: Request, approve: Callable[[Cost | None], None]) -> ActionOutcome | None:
        """Do it. None if it was refused, with a warning. Raises ``Failed`` where that is not known."""
        return self._carried_out(request, approve, dry_run=False)

    def _carried_out(
        self, request: Request, approve: Callable[[Cost | None], None], *, dry_run: bool
    ) -> ActionOutcome | None:
        try:
            self._must_have_scopes(request)
            done = act(request, self.action, self.inputs, dry_run=dry_run, approve=approve)
        except HostingError as error:
            if not (dry_run or _is_refusal(error)):
                raise
            request.warn(f"not renewed, though keep_paid asks for it: {error}")
            key = self.action.result, self.inputs.id
            paid = paid_time_of(request).declared(key, self.renews)
            event = paid.of(key)
            if event and not event.what.ended and (line := paid.warning(event)):  # else it was said
                request.warn(line)
            return None
        return _with_date(done) if done.changed else None

    def _must_have_scopes(self, request: Request) -> None:
        """Without one of them a person may decide, as what the key cannot see may be paid already."""
        lacks = sorted({*self.action.scopes} - {*request.client.key_owner.get().scopes})
        if lacks and not request.client.is_test_key:
            named = " and ".join(lacks)
            raise KeyLacksScope(f"the API key lacks {named}. Next: give the key {named}")


def _with_date(done: ActionOutcome) -> ActionOutcome:
    """The same; its change says until when it pays, not what was asked for."""
    if done.change is None or done.reaches is None:
        return done
    before, after = done.change
    return replace(done, change=(before, {**after, "paid_until": f"at least {done.reaches[:10]}"}))


def _is_refusal(error: HostingError) -> bool:
    """Whether the limit, another run, the account or the service said no: nothing was charged."""
    if isinstance(error, InvalidInput | LockTimeout):
        return True
    if isinstance(error, ResourceError):
        return not isinstance(error, Failed)
    return isinstance(error, ApiError) and not error.outcome_unknown


def renewal(
    request: Request, resource: AnyResource, state: State, declared: Mapping[str, object]
) -> Renewal | None:
    """The renewal that ``keep_paid`` among the ``declared`` inputs asks for now; None if there is none.

    None, too, where auto-renew is on and the balance covers it, or its last hour has begun, or the provider
    has to be asked first (``Prepaid.may_be_renewed``). Reads only. Raises what the reads raise.
    """
    keep, renews = declared.get("keep_paid"), declared.get("auto_renew")
    if not isinstance(keep, str) or not isinstance(resource, Remarked) or not state.id.isdigit():
        return None
    action, what = _ACTIONS[resource.kind], resource.prepaid(request, state)
    now, until = catalog_reads.service_now(request), _safe_until(what, state, action.date)
    if what is None or until is None or until - now >= duration(keep):
        return None
    if not what.may_be_renewed(now):
        return None
    if _renews_itself(request, what, renews, until - now):
        return None
    wanted = now + duration(keep)
    if until < now:  # the service may count from now: buy one period, and look again in the next run
        wanted = min(wanted, action.smallest.after(until))
    text = as_text(wanted.replace(microsecond=0))
    inputs = action.Inputs.model_validate({"id": state.id, "until": text})
    return Renewal(action, inputs, renews)


def unreported(
    request: Request, resource: AnyResource, state: State, declared: Mapping[str, object]
) -> Payment | None:
    """What an interrupted run paid to keep the object, and could not report; from now on it is reported."""
    if declared.get("keep_paid") is None or resource.kind not in _ACTIONS:
        return None
    action = _ACTIONS[resource.kind]
    entry = purchase_journal.interrupted(request, action.kind, f"{action.result} {state.id}")
    found = purchase_journal.unreported(request.client, entry, action.kind, {"id": state.id})
    purchase_journal.reported(request.unreported)
    return found


def _safe_until(what: Prepaid | None, state: State, date: str) -> datetime | None:
    """Until when it is paid. A simulated renewal shows in the recorded state alone."""
    if what is None or what.safe_until is None:
        return None
    recorded = state.values().get(date) if state.mode == "test" else None
    return max(what.safe_until, moment(recorded)) if recorded else what.safe_until


def _renews_itself(request: Request, what: Prepaid, declared: object, left: timedelta) -> bool:
    if not (what.renews if declared is None else declared):
        return False
    if timedelta(0) <= left <= _LAST_HOUR:
        return True
    event = paid_time_of(request).declared(what.key, declared).of(what.key)
    return event is not None and event.kind == "renewed"
