"""What a server can do beside the four methods: see ``powers``."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, ClassVar, Literal

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import SANDBOX_SERVER_SECONDS
from pulumi_hosting.client.exceptions import CallError, HostingError
from pulumi_hosting.client.results import Damaged, matching
from pulumi_hosting.exactly_once import catalog_reads, order_facts, server_search
from pulumi_hosting.exactly_once.generation import ORDER_PREFIX
from pulumi_hosting.exactly_once.ownership_tag import is_tag, is_tag_of, split_tag
from pulumi_hosting.resources import powers, server_calls, ssh_ready
from pulumi_hosting.resources.base import OnChange, Reasons, several
from pulumi_hosting.resources.fingerprints import fingerprints_of, known_keys
from pulumi_hosting.resources.server import ServerBase
from pulumi_hosting.resources.server_fields import (
    ServerInputs,
    ServerState,
    from_api,
    is_simulated,
    provisional,
)
from pulumi_hosting.resources.takeover import Takeover
from pulumi_hosting.session import prepaid
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import AmbiguousMatch, KeyLacksScope
from pulumi_hosting.session.prepaid import Prepaid
from pulumi_hosting.session.request import Request

_CLOSE = 0.85
"""How alike the names of tariffs must be for a guess: VDS-11 may mean VDS-1, and VDS-9 does not."""


class ServerResource(
    ServerBase,
    powers.Findable[ServerInputs, ServerState],
    powers.Renamable[ServerInputs],
    powers.Adoptable[ServerInputs],
    powers.Named,
    powers.Validated,
    powers.Priced,
    powers.Provisioned[ServerInputs, ServerState],
    powers.Sandboxed[ServerState],
    powers.Rebuildable[ServerState],
    powers.Refunded[ServerState],
    powers.Remarked[ServerState],
    powers.Predicted[ServerState],
):
    """A server as resource: see ``server`` for its inputs, its state and its methods."""

    natural_key: ClassVar = ("name",)
    sandbox = "listed"

    def find(self, request: Request, inputs: ServerInputs) -> ServerState | None:
        """The living server of that name; one still being ordered counts too. That there is none is
        concluded from what an order may depend on, or from what is asked for now."""
        began = request.clock.monotonic()
        for is_last in (False, True):
            believed = request.seconds_since(began) if request.fresh else order_facts.SNAPSHOT_AGE
            orders, servers = order_facts.orders_and_servers(
                request, believed if is_last else server_search.REPORT_AGE
            )
            living = matching(servers, lambda server: server.name == inputs.name and not server.is_gone)
            if len(living) > 1:
                raise AmbiguousMatch(f"server name {inputs.name!r}", [str(server.id) for server in living])
            if living:
                return from_api(living[0])
            for order in orders:
                if order.server_name == inputs.name and order_facts.is_under_way(request, order):
                    return provisional(order)
        return None

    def all(self, request: Request, **filters: Any) -> Iterable[ServerState]:
        return map(from_api, self.listed(request, **filters))

    @staticmethod
    def listed(request: Request, *, name: str | None = None, **filters: Any) -> Iterator[m.Server]:
        """By ``status`` and ``ip`` (the service looks) and by ``name`` (we do)."""
        for server in request.client.servers.list(**filters):
            if isinstance(server, Damaged) and request.skip_damaged is not None:
                request.skip_damaged(server.error())
            elif name is None or server.name == name:
                yield server

    def refuse_renamed(
        self, request: Request, inputs: ServerInputs, undone: Literal["ordered", "deleted"]
    ) -> None:
        """By its tag. ``adopt_id`` says which server is meant."""
        if inputs.name and inputs.adopt_id is None:
            if undone == "ordered":
                order_facts.refuse_late_order(request, inputs.name, inputs.order_attempt or 0)
            elif late := order_facts.late_order(request, inputs.name):
                request.warn(order_facts.how_order_ended(request, late, inputs.name))
            server_search.refuse_renamed(request, inputs.name, undone, inputs.order_attempt or 0)

    def takeover(self, request: Request, inputs: ServerInputs) -> Takeover | None:
        """By ``adopt_id`` or by its tag, or one of the name, which is found again or stops the order: nothing
        is paid either way. Raises ``ResourceConflict`` for one of the name that no key can prove any more."""
        if inputs.adopt_id is not None:
            server = server_calls.adoptable_server(request, inputs.adopt_id, inputs.given())
            tag = split_tag(server.notes)[1]
            reason = "adopt_id names it"
            if is_tag(tag) and not is_tag_of(tag, request.identity):
                lost = "a stack that has it can no longer delete it then"
                reason = f"{reason}; it carries the tag of another resource: {lost}"
            return self._announced(request, server, reason)
        if request.name_is_identity:
            return None
        order_facts.refuse_late_order(request, inputs.name, inputs.order_attempt or 0)
        found = server_search.find_tagged(request, inputs, attempt=inputs.order_attempt or 0)
        if found is not None:
            return self._announced(request, found, server_search.TAGGED)
        found = None if inputs.order_attempt else server_search.unproven(request, inputs.name)
        return None if found is None else replace(self._announced(request, found, ""), unsure=True)

    def _announced(self, request: Request, server: m.Server, reason: str) -> Takeover:
        billing, invoice = server.billing, order_facts.purchase_of(request, server)
        number = None if invoice is None else str(invoice.id)
        return Takeover(
            from_api(server).model_copy(update={"invoice_id": number}),
            reason,
            server.created_at,
            invoice.amount if invoice else None,
            billing.currency if billing else None,
            billing.price_monthly if billing else None,
            self.title,
        )

    def cost(self, request: Request, desired: Mapping[str, Any]) -> Cost | None:
        """The quote: the same price functions as the order (API document, "Catalog")."""
        if desired.get("adopt_id") is not None or "tariff_id" not in desired:
            return None
        period: dict[str, Any]
        if _is_hourly(desired):
            period = {"hours": desired.get("hours") or 1, "billing_cycle": "hourly"}
            what = f"{period['hours']} h"
        else:
            period = {"months": desired.get("months") or 1}
            what = f"{period['months']} month{'s' if period['months'] > 1 else ''}"
        if desired.get("promo_code") is not None:
            period["promo_code"] = desired["promo_code"]
        ids = several(desired["tariff_id"])
        quotes = [found for id in ids if (found := catalog_reads.quote(request, id, period)) is not None]
        if len(quotes) < len(ids):
            return None
        for promo in (quote.promo for quote in quotes):
            if promo is not None and not promo.valid:
                request.warn(
                    f"promo code {promo.code}: {promo.message or 'is not valid'}; the order is likely to be "
                    "refused"
                )
                break
        quote = max(quotes, key=lambda quote: quote.total)
        balance = quote.balance
        if balance is None and quote.shortfall:  # the API's document promises no more
            balance = quote.total - quote.shortfall
        names = [catalog_reads.tariff_called(request, id) for id in ids]
        likely = _likely(catalog_reads.tariffs(request), ids)
        named, before, after = names[likely], names[:likely], names[likely + 1 :]
        named += f", or {' or '.join(after)} if that cannot be ordered" if after else ""
        named += f", unless {' or '.join(before)} can be ordered by then" if before else ""
        choices = {name: f"{name}, {what}" for name in names} if len(ids) > 1 else {}
        return Cost(quote.total, quote.currency, f"{named}, {what}", balance, choices)

    def may_be_paid(self, request: Request, desired: Mapping[str, Any]) -> bool:
        name = desired.get("name")
        return name is not None and order_facts.pending_order(request, name) is not None

    def refund(self, request: Request, state: ServerState) -> Decimal | None:
        """Asked for, since it grows less with each day. None while only the order is known."""
        with suppress(HostingError, ValueError):  # ValueError: an order's id
            ask = request.client.servers.refund_quote
            quote = request.shared(("refund", state.id), lambda: ask(int(state.id)))
            return quote.amount if quote.refundable else Decimal("0.00")
        return None

    def validate(self, request: Request, desired: Mapping[str, Any], fields: frozenset[str]) -> Reasons:
        """Tariff and image against the catalog: there, in stock, allowed together, hourly where it is to
        be paid by the hour.
        """
        failures: Reasons = {}
        if desired.get("ready") and fields & {"ready", "tariff_id", "os"} and not request.client.is_test_key:
            failures |= {"ready": why} if (why := ssh_ready.missing_program()) else {}
        if desired.get("adopt_id") is not None:
            return failures
        declared = list[m.Tariff]()
        if fields & {"tariff_id", "os", "hours", "billing_cycle"} and "tariff_id" in desired:
            declared = self._tariffs(request, desired, fields, failures)
        is_image_asked = fields & {"tariff_id", "os"} and "os" in desired
        if is_image_asked and (
            no_image := catalog_reads.refused_image(request, desired["os"], lambda: declared)
        ):
            failures["os"] = no_image
        keys = (
            desired.get("ssh_key_ids") if "ssh_key_ids" in fields and not request.client.is_test_key else None
        )
        if keys and (missing := [id for id in keys if id not in known_keys(request, keys)]):
            failures["ssh_key_ids"] = f"there is no SSH key {', '.join(missing)} on this account"
        if "name" in desired:
            request.ownership.name(request.identity, desired["name"], request.label)
        if not failures and "name" in desired and {"name", "tariff_id"} <= fields:
            server_calls.remark_on_same_name(request, desired["name"])
        return failures

    def _tariffs(
        self, request: Request, desired: Mapping[str, Any], fields: frozenset[str], failures: Reasons
    ) -> list[m.Tariff]:
        """The declared tariffs that there are. What is wrong with them is added to ``failures``: one of them
        is there no more, or not by the hour; or all are out of stock."""
        by, new = "tariff_id" if desired.get("tariff") is None else "tariff", "tariff_id" in fields
        tariffs, ids = catalog_reads.tariffs(request), several(desired["tariff_id"])
        found = [tariffs[id] for id in ids if id in tariffs]
        sold_out = [f"{tariff.id} ({tariff.name})" for tariff in found if tariff.in_stock is False]
        if unknown := [id for id in ids if id not in tariffs]:
            failures[by] = catalog_reads.unknown_tariff(unknown[0], tariffs)
        elif new and len(sold_out) == len(ids) and not self._has_started(request, desired):
            out = f"tariff {sold_out[0]} is" if len(ids) == 1 else f"tariffs {', '.join(sold_out)} are all"
            failures[by] = f"{out} out of stock: choose one of {catalog_reads.choices(tariffs)}"
        for tariff in () if failures else found:
            named = f"tariff {tariff.id} ({tariff.name})"
            if tariff.hourly_available is False and _is_hourly(desired):
                failures["billing_cycle"] = f"{named} is not offered by the hour"
            elif new and tariff.in_stock is None:
                request.warn(f"{named}: the catalog does not say whether it is in stock")
        return found

    def resolve(self, request: Request, field: str, name: str) -> int:
        """The id of the tariff with this name, case ignored."""
        tariffs = catalog_reads.tariffs(request)
        found = [tariff for tariff in tariffs.values() if tariff.name.casefold() == name.strip().casefold()]
        if len(found) == 1:
            return found[0].id
        if found:
            several = " and ".join(
                f"{tariff.id} ({tariff.location.name})" if tariff.location else str(tariff.id)
                for tariff in found
            )
            raise ValueError(f"several tariffs are named {name!r}: give tariff_id, one of {several}")
        names = {tariff.name.casefold(): tariff.name for tariff in tariffs.values()}
        like = get_close_matches(name.strip().casefold(), names, 1, cutoff=_CLOSE)
        meant = f"did you mean {names[like[0]]!r}, or " if like else "choose "
        raise ValueError(f"there is no tariff named {name!r}: {meant}one of {catalog_reads.choices(tariffs)}")

    def likely(self, request: Request, field: str, values: list[int]) -> Mapping[str, object]:
        """The first tariff that the catalog does not show out of stock."""
        id = values[_likely(catalog_reads.tariffs(request), values)]
        return {field: id, "tariff": catalog_reads.tariff_called(request, id)}

    def _has_started(self, request: Request, desired: Mapping[str, Any]) -> bool:
        """Whether a server of this name exists or is under way: an interrupted run may have taken the
        last one of its tariff.
        """
        name = desired.get("name")
        if name is None:
            return False
        orders, servers = order_facts.orders_and_servers(request)
        return any(order.server_name == name for order in orders) or any(
            server.name == name and not server.is_gone for server in servers
        )

    def settle(self, request: Request, state: ServerState, inputs: ServerInputs) -> ServerState:
        """Wait for the order, then set what an order cannot carry: notes, auto-renew, our tag."""
        is_new = state.id.startswith(ORDER_PREFIX)
        if is_new:
            state = self.ordered(request, state, inputs)
            request.ownership.add(request.identity, state.id)
        is_new = is_new or state.id in request.made | request.taken_over
        # In a playbook another host's task may have ordered it, and received the password.
        is_first = request.is_first(f"root password of server {state.id}")
        unkept = state.root_password is None or not (request.keeps_secrets or inputs.password is not None)
        if unkept and inputs.adopt_id is None and not inputs.ssh_key_ids:
            step = f"reset it: {request.client.words.reset.format(id=state.id)}"
            lost = f"server {state.id}: its generated root password was"
            if not state.root_password and is_first:
                request.warn(f"{lost} not shown to this run. Next: {step}")
            elif state.root_password and request.is_first("discarded password"):
                why = "discarded, like that of every server of this run, since root_password_file is not set"
                request.warn(f"{lost} {why}. Next: {step}")
        state = self.set_power(request, self._set_late(request, state, inputs, is_new), inputs)
        return self.until_ready(request, state, inputs.ready)

    def _set_late(
        self, request: Request, state: ServerState, inputs: ServerInputs, is_new: bool
    ) -> ServerState:
        """``is_new``: it was ordered or taken over by this declaration, whose tag is to be written."""
        given = inputs.given(inputs.settings())
        desired = {name: value for name, value in given.items() if getattr(state, name) != value}
        if not is_new:
            return self.patch(request, state, desired) if desired else state
        # What reads back without the tag is what was written with it, so the tag is written even where
        # nothing else is.
        notes = desired.get("notes", state.notes) or ""
        try:
            if not desired and "servers:manage" not in request.client.key_owner.get().scopes:
                raise KeyLacksScope("the API key lacks servers:manage. Next: give it that scope")
            return self.patch(request, state, {**desired, "notes": notes})
        except (CallError, KeyLacksScope) as error:
            if desired:
                raise
            # Without the tag a lost answer is still found by its key, for seven days.
            is_unknown = isinstance(error, CallError) and error.outcome_unknown
            lacks = "may be missing" if is_unknown else "could not be written"
            request.warn(
                f"server {state.id}: the ownership tag {lacks}, and without it nothing shows after seven "
                f"days who ordered the server: {error}"
            )
            if inputs.adopt_id is None and not request.name_is_identity:
                return state
            # The tag of another resource stays, and with it on record nothing keeps the server from being
            # changed and deleted. Where no state is kept, nothing is on record.
            there = None
            with suppress(HostingError):
                if not request.name_is_identity and (server := order_facts.living_server(request, state.id)):
                    there = split_tag(server.notes)[1]
            return state.model_copy(update={"ownership_tag": there})

    def wait(self, request: Request, state: ServerState) -> ServerState:
        if not state.id.startswith(ORDER_PREFIX):
            return state
        return from_api(order_facts.wait_for_order(request, state.id, state.name), state)

    def is_provisional(self, state: ServerState) -> bool:
        return state.id.startswith(ORDER_PREFIX)

    def is_simulated(self, id: str) -> bool:
        return is_simulated(id)

    def has_lapsed(self, state: ServerState, now: datetime) -> bool:
        """A sandbox server expires after 24 hours (API document, "Sandbox")."""
        if state.created_at is None or not self.is_simulated(state.id):
            return False
        return now - datetime.fromisoformat(state.created_at) > timedelta(seconds=SANDBOX_SERVER_SECONDS)

    def on_change(self, field: str, desired: Mapping[str, Any]) -> OnChange | None:
        if not self.Inputs.trait(field).rebuilds:
            return None
        choices: Mapping[str, OnChange] = {"replace": "replace", "reinstall": "update", "forbid": "refuse"}
        return choices.get(desired.get("rebuild") or "", "replace" if field == "os" else "keep")

    def is_same(self, request: Request, field: str, olds: Mapping[str, Any], after: Any) -> bool:
        """SSH keys are the same by fingerprint: a key that was made again has another id. Where ``olds`` are
        only the former inputs and their keys are gone, the comparison with the state decides. The power of a
        server that is suspended or cancelled is not shown."""
        if field == "power":
            return olds.get(field) is None and olds.get("status") in prepaid.ENDED
        if self.Inputs.trait(field).waits:
            return request.name_is_identity  # no state tells
        if field != "ssh_key_ids" or not after or not olds.get(field):
            return False
        installed = olds.get("ssh_key_fingerprints") or fingerprints_of(request, olds[field])
        if installed is None:
            return "id" not in olds
        return fingerprints_of(request, after) == sorted(installed)

    def consequence(
        self, request: Request | None, state: ServerState, fields: frozenset[str], replaces: Collection[str]
    ) -> str | None:
        if replaces:
            then, credit = "", self.refund(request, state) if request else None
            if credit is not None:
                amount = f"about {credit} {state.currency or ''}".rstrip() + " is" if credit else "nothing is"
                then = f", and {amount} credited"
            return (
                f"{' and '.join(sorted(replaces))} by replacing server {state.id}: unless it is retained, "
                f"it is deleted and ITS DISK IS ERASED{then}"
            )
        what = sorted(fields & {"os", "ssh_key_ids", "password"})
        return f"{' and '.join(what)} by reinstalling the server: ITS DISK IS ERASED" if what else None

    def remarks(self, request: Request, state: ServerState) -> list[str]:
        if request.client.is_test_key or state.id.startswith(ORDER_PREFIX) or self.is_simulated(state.id):
            return []
        try:
            server = server_calls.server_at_first(request, state.id)
            if server is None or server.is_gone:
                ended = server_calls.how_it_ended(state.id, server, state.name, state.next_due_at)
                other = server_search.tagged_elsewhere(request, server_search.REPORT_AGE)
                then = (
                    "to order a new one"
                    if other is None
                    else f"to take it over: {server_calls.described(other)}"
                )
                step = f"Next: {request.client.words.read_and_apply}, {then}"
                step = server_calls.WITHOUT_ADOPTED if request.adopts else step
                return [f"{ended}, and the state still has it. {step}"]
        except HostingError:
            return []
        return []

    def is_gone(self, request: Request, state: ServerState) -> bool:
        if request.client.is_test_key or not state.id.isdigit() or self.is_simulated(state.id):
            return False
        server = server_calls.server_at_first(request, state.id)  # the read of the remarks
        return server is None or server.is_gone

    def prepaid(self, request: Request, state: ServerState) -> Prepaid | None:
        server = server_calls.server_at_first(request, state.id)
        return None if server is None or server.is_gone else prepaid.of_server(server)

    def adjust_prediction(self, predicted: dict[str, Any], state: ServerState | None) -> dict[str, Any]:
        if state and predicted["name"] != state.name:
            predicted.pop("ownership_tag", None)  # it may be made of the name
        if state and state.status in prepaid.ENDED:
            predicted["power"] = state.power
        if state and predicted["power"] != state.power:
            # a stopped server's status is stopped, and active once it runs again
            predicted.pop("status", None)
        if state and any(predicted[name] != getattr(state, name) for name in ("ready", "os", "ssh_key_ids")):
            predicted.pop("ssh_host_key", None)
        return predicted


def _likely(tariffs: Mapping[int, m.Tariff], ids: list[int]) -> int:
    """The place of the tariff that would be ordered as of now: all are out of stock, the first."""
    there = (place for place, id in enumerate(ids) if id in tariffs and tariffs[id].in_stock is not False)
    return next(there, 0)


def _is_hourly(desired: Mapping[str, Any]) -> bool:
    return desired.get("hours") is not None or desired.get("billing_cycle") == "hourly"


SERVER = ServerResource()
