"""A virtual server (API document, "Servers" and "Orders").

Ordered once (see ``ordering``), waited for through a 202, changed in place where the API can (name, notes, auto-renew), replaced where it
cannot. The id is ``order:<invoice_id>`` while all that is known of it is its order.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar, Literal

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import SANDBOX_SERVER_SECONDS
from pulumi_hosting.client.exceptions import (
    ApiError,
    CallError,
    Conflict,
    HostingError,
    NotFound,
    OperationInProgress,
    ServerError,
    ServiceState,
    TransportError,
    Unavailable,
)
from pulumi_hosting.client.results import Damaged, matching
from pulumi_hosting.exactly_once import catalog
from pulumi_hosting.exactly_once.idempotency_keys import SCHEME
from pulumi_hosting.exactly_once.orders import (
    ORDER_PREFIX,
    TAGGED,
    Ordered,
    ServerOrder,
    find_tagged,
    pending_orders,
    refuse_namesakes,
)
from pulumi_hosting.exactly_once.ownership_tag import is_tag, is_tag_of, next_tag, ownership_tag, split_tag, was_taken_over, with_tag
from pulumi_hosting.resources import base
from pulumi_hosting.resources.base import OnChange, Takeover
from pulumi_hosting.resources.powers import Adoptable, Findable, Predicted, Priced, Provisioned, Rebuildable, Remarked, Sandboxed, Validated
from pulumi_hosting.resources.server_looks import (
    addresses_along,
    charge_of,
    fingerprints_of,
    how_it_ended,
    known_keys,
    listed_server,
    living_server,
    remark_on_namesakes,
    renewal_remarks,
    servers_at_first,
)
from pulumi_hosting.resources.server_shape import (
    POWER,
    ServerInputs,
    ServerState,
    as_written,
    from_api,
    provisional,
)
from pulumi_hosting.session.context import Context, account
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import AmbiguousMatch, OrderFailed, ResourceError, TakenOver, WaitTimeout
from pulumi_hosting.session.text import as_text


class ServerResource(
    base.Resource[ServerInputs, ServerState],
    Findable[ServerInputs, ServerState],
    Adoptable[ServerInputs],
    Validated,
    Priced,
    Provisioned[ServerInputs, ServerState],
    Sandboxed[ServerState],
    Rebuildable,
    Remarked[ServerState],
    Predicted[ServerState],
):
    kind: ClassVar[str] = "server"
    title: ClassVar[str] = "server"
    Inputs = ServerInputs
    State = ServerState
    natural_key: ClassVar = ("name",)
    default_name = True
    sandbox = "listed"
    after_failed_deletion = "addresses and PTR records that were declared with server= are found again by the next up"
    scopes: ClassVar = {
        "read": ("servers:read",),
        "create": ("servers:read", "servers:order", "servers:manage"),
        "update": ("servers:read", "servers:manage"),
        "delete": ("servers:read", "servers:delete"),
    }

    # --- looking

    def find(self, context: Context, inputs: ServerInputs) -> ServerState | None:
        """The living server of that name; one still being ordered counts too."""
        if found := self._named(context, inputs.name):
            return found
        for order in context.client.orders.list():
            if order.server_name == inputs.name and order.is_pending:
                return provisional(order)
        # An order that was carried out between the two looks is in neither; after it left the orders, it is among the servers.
        return self._named(context, inputs.name)

    @staticmethod
    def _named(context: Context, name: str) -> ServerState | None:
        living = matching(context.client.servers.list(), lambda server: server.name == name and not server.is_gone)
        if len(living) > 1:
            raise AmbiguousMatch(f"server name {name!r}", [str(server.id) for server in living])
        return from_api(living[0]) if living else None

    def read(self, context: Context, id: str, last: ServerState | None = None) -> ServerState | None:
        """The tag that is there is recorded where it is this identity's; that of a later run is not, so that no deletion fits it."""
        if id.startswith(ORDER_PREFIX):
            order = context.client.orders.get(_order_id(id))
            if order.is_failed:
                return None
            if not (order.is_active and order.server_id):
                return provisional(order, last)
            id = str(order.server_id)
        server = listed_server(context, id) or living_server(context, id)
        if server is None:
            if last is not None and last.status and not self.is_simulated(id):
                context.warn(f"{how_it_ended(context, last)}; a new one is ordered where the program declares it")
            return None
        state = as_written(context, from_api(server, last), last)
        tag = split_tag(server.notes)[1]
        recorded = last.ownership_tag if last is not None else None
        if was_taken_over(recorded, tag) == "by a later run":
            context.warn(
                f"server {id}: a later run took it over, from another backend perhaps; from here it is not deleted any more, and a "
                "deletion says how to leave it to that run, or to take it back"
            )
        tag = tag if is_tag_of(tag, context.identity) and not was_taken_over(recorded, tag) else recorded
        return state.model_copy(update={"ownership_tag": tag})

    def is_simulated(self, id: str) -> bool:
        return id.isdigit() and int(id) >= m.SANDBOX_SERVER_IDS

    def has_lapsed(self, state: ServerState, now: datetime) -> bool:
        """A sandbox server ends by itself after 24 hours (API document, "Sandbox")."""
        if state.created_at is None or not self.is_simulated(state.id):
            return False
        return now - datetime.fromisoformat(state.created_at) > timedelta(seconds=SANDBOX_SERVER_SECONDS)

    def on_change(self, field: str, desired: Mapping[str, Any]) -> OnChange | None:
        if not self.Inputs.trait(field).rebuilds:
            return None
        choices: Mapping[str, OnChange] = {"replace": "replace", "reinstall": "update", "forbid": "refuse"}
        return choices.get(desired.get("rebuild") or "", "replace" if field == "os" else "keep")

    def is_same(self, context: Context, field: str, olds: Mapping[str, Any], after: Any) -> bool:
        """SSH keys are the same by fingerprint: a key that was made again has another id. Where ``olds`` are only the inputs of before and
        their keys are gone, nothing can be told yet, and the comparison with the state decides."""
        if field != "ssh_key_ids" or not after or not olds.get(field):
            return False
        installed = olds.get("ssh_key_fingerprints") or fingerprints_of(context, olds[field])
        if installed is None:
            return "id" not in olds
        return fingerprints_of(context, after) == sorted(installed)

    # --- asking before

    def consequence(self, fields: frozenset[str]) -> str | None:
        what = sorted(fields & {"os", "ssh_key_ids", "password"})
        return f"{' and '.join(what)} by reinstalling the server: ITS DISK IS ERASED" if what else None

    def validate(self, context: Context, desired: Mapping[str, Any], fields: frozenset[str]) -> dict[str, str]:
        """Tariff and image against the catalog: there, in stock, allowed together, hourly where it is to be paid by the hour."""
        if desired.get("adopt_id") is not None:
            return {}
        failures: dict[str, str] = {}
        tariff = None
        if fields & {"tariff_id", "os", "hours", "billing_cycle"} and "tariff_id" in desired:
            tariff = catalog.tariffs(context).get(desired["tariff_id"])
            if tariff is None:
                failures["tariff_id"] = (
                    f"there is no tariff {desired['tariff_id']}: choose one of {catalog.choices(catalog.tariffs(context))}"
                )
            elif "tariff_id" in fields and tariff.in_stock is False and not self._has_begun(context, desired):
                failures["tariff_id"] = f"tariff {tariff.id} ({tariff.name}) is out of stock"
            elif (
                "hourly" in (desired.get("billing_cycle"), "hourly" if desired.get("hours") else None) and tariff.hourly_available is False
            ):
                failures["billing_cycle"] = f"tariff {tariff.id} ({tariff.name}) is not offered by the hour"
            elif "tariff_id" in fields and tariff.in_stock is None:
                context.warn(f"tariff {tariff.id} ({tariff.name}): the catalog does not say whether it is in stock")
        if fields & {"tariff_id", "os"} and "os" in desired:
            images = catalog.os_images(context)
            if desired["os"] not in images:
                failures["os"] = f"there is no image {desired['os']!r}: choose one of {', '.join(sorted(images))}"
            elif tariff is not None and desired["os"] in (tariff.excluded_os or ()):
                failures["os"] = f"image {desired['os']} is not offered with tariff {tariff.id} ({tariff.name})"
        keys = desired.get("ssh_key_ids") if "ssh_key_ids" in fields and not context.client.is_test_key else None
        if keys and (missing := [id for id in keys if id not in known_keys(context, keys)]):
            failures["ssh_key_ids"] = f"there is no SSH key {', '.join(missing)} on this account"
        if "name" in desired:
            context.ownership.name(context.identity, desired["name"])
        if not failures and "name" in desired and {"name", "tariff_id"} <= fields:
            remark_on_namesakes(context, desired["name"])
        return failures

    def remarks(self, context: Context, state: ServerState) -> list[str]:
        if context.client.is_test_key or not state.id.isdigit() or self.is_simulated(state.id):
            return []
        listed = servers_at_first(context)
        if listed is None:
            return []
        try:
            server = listed.get(state.id) or living_server(context, state.id)
            if server is None:
                return [f"{how_it_ended(context, state)}, and the state still has it. Next: pulumi up --refresh, which orders a new one"]
            return renewal_remarks(context, server, listed.values())
        except HostingError:
            return []

    def _has_begun(self, context: Context, desired: Mapping[str, Any]) -> bool:
        """Whether a server of this name exists or is under way: an interrupted run may have taken the last one of its tariff."""
        name = desired.get("name")
        return name is not None and (
            any(order.server_name == name for order in context.client.orders.list())
            or any(server.name == name and not server.is_gone for server in context.client.servers.list())
        )

    def cost(self, context: Context, desired: Mapping[str, Any]) -> Cost | None:
        """The quote: the same price functions as the order (API document, "Catalog")."""
        if desired.get("adopt_id") is not None or "tariff_id" not in desired:
            return None
        period: dict[str, Any]
        if desired.get("hours") is not None or desired.get("billing_cycle") == "hourly":
            period = {"hours": desired.get("hours") or 1, "billing_cycle": "hourly"}
            what = f"{period['hours']} h"
        else:
            period = {"months": desired.get("months") or 1}
            what = f"{period['months']} month{'s' if period['months'] > 1 else ''}"
        if desired.get("promo_code") is not None:
            period["promo_code"] = desired["promo_code"]
        quote = catalog.quote(context, desired["tariff_id"], period)
        if quote is None:
            return None
        if quote.promo is not None and not quote.promo.valid:
            context.warn(f"promo code {quote.promo.code}: {quote.promo.message or 'is not valid'}; the order is likely to be refused")
        tariff = catalog.tariffs(context).get(desired["tariff_id"])
        return Cost(quote.total, quote.currency, f"{tariff.name if tariff else 'server'}, {what}", quote.balance)

    def all(self, context: Context, *, name: str | None = None, **filters: Any) -> Iterable[ServerState]:
        """By ``status`` and ``ip`` (the service looks) and by ``name`` (we do)."""
        for server in context.client.servers.list(**filters):
            if isinstance(server, Damaged) and context.skip_damaged is not None:
                context.skip_damaged(server.error())
            elif name is None or server.name == name:
                yield from_api(server)

    def is_provisional(self, state: ServerState) -> bool:
        return state.id.startswith(ORDER_PREFIX)

    # --- making

    def create(self, context: Context, inputs: ServerInputs) -> ServerState:
        if inputs.adopt_id is not None:
            server = self._adoptable(context, inputs, inputs.adopt_id)
            return self._taken(context, server, from_api(server), inputs, fingerprints_of(context, inputs.ssh_key_ids))
        self._must_be_able_to_finish(context, inputs)
        fingerprints = fingerprints_of(context, inputs.ssh_key_ids)
        ordered = ServerOrder(context, self._body(context, inputs), attempt=inputs.order_attempt or 0).place()
        state = from_api(ordered.server) if ordered.server else provisional(_expect_order(ordered))
        extra = {
            "invoice_id": None if ordered.invoice_id is None else str(ordered.invoice_id),
            # Without a state to remember it, a charge is one of this run, and a replay is not.
            "charged": None if context.name_is_identity and ordered.found and ordered.attempts == 1 else as_text(ordered.charged),
            "root_password": ordered.root_password,
        }
        state = state.model_copy(update=extra)
        if ordered.found:
            since = ordered.server.created_at if ordered.server else _expect_order(ordered).created_at
            context.info(Takeover(state, ordered.reason, since, title=self.title).announcement(context.service_now()))
            context.ownership.add(context.identity, state.id)
            return self._taken(context, ordered.server, state, inputs, fingerprints)
        context.ownership.add(context.identity, state.id)
        own = None if context.name_is_identity else ownership_tag(context.identity)
        return self._kept(state.model_copy(update={"name": inputs.name, "ownership_tag": own}), inputs, fingerprints)

    @staticmethod
    def _body(context: Context, inputs: ServerInputs) -> dict[str, Any]:
        """What is ordered. A simulated order is not sent the ids of simulated keys: no document says that it would know them."""
        body = inputs.order_body()
        if context.client.is_test_key and "ssh_key_ids" in body:
            real = {key.id for key in context.shared(("ssh_keys",), context.client.ssh_keys.list)}
            body["ssh_key_ids"] = [key for key in body["ssh_key_ids"] if key in real]
            if not body["ssh_key_ids"]:
                del body["ssh_key_ids"]
        return body

    def _taken(
        self, context: Context, server: m.Server | None, state: ServerState, inputs: ServerInputs, fingerprints: list[str] | None
    ) -> ServerState:
        """The state of a server that is taken over: with the tag that is going to be written, so that no earlier state's deletion fits."""
        context.taken_over.add(state.id)
        tag = None if context.name_is_identity else next_tag(split_tag(server.notes)[1] if server else None, context.identity)
        return self._kept(state.model_copy(update={"ownership_tag": tag}), inputs, fingerprints)

    def takeover(self, context: Context, inputs: ServerInputs) -> Takeover | None:
        """By ``adopt_id`` or by its tag. Raises ``ResourceConflict`` for a namesake beside which nothing is ordered; what only sending the order's
        key could prove is a remark of ``validate``."""
        if inputs.adopt_id is not None:
            server = self._adoptable(context, inputs, inputs.adopt_id)
            tag = split_tag(server.notes)[1]
            others = is_tag(tag) and not is_tag_of(tag, context.identity)
            reason = "adopt_id names it" + (
                "; it carries the tag of another resource, which can no longer delete it then" if others else ""
            )
            return self._announced(context, server, reason)
        if context.name_is_identity:
            return None
        found = find_tagged(context, inputs.name, attempt=inputs.order_attempt or 0)
        if found is None and not inputs.order_attempt:
            refuse_namesakes(context, inputs.name)
        return None if found is None else self._announced(context, found, TAGGED)

    def _announced(self, context: Context, server: m.Server, reason: str) -> Takeover:
        billing = server.billing
        return Takeover(
            from_api(server),
            reason,
            server.created_at,
            charge_of(context, server),
            billing.currency if billing else None,
            billing.price_monthly if billing else None,
            self.title,
        )

    @staticmethod
    def _must_be_able_to_finish(context: Context, inputs: ServerInputs) -> None:
        """Stop before the money moves where the key may order but not set what an order cannot carry."""
        late = [name for name in ("notes", "auto_renew") if getattr(inputs, name) is not None]
        if late and "servers:manage" not in account(context.client).scopes:
            raise ResourceError(
                f"the API key lacks the scope servers:manage, which {' and '.join(late)} need once the server is there; nothing was "
                "ordered. Next: give the key that scope, or leave them out"
            )

    @staticmethod
    def _kept(state: ServerState, inputs: ServerInputs, fingerprints: list[str] | None = None) -> ServerState:
        """With what was declared and the API never shows. ``fingerprints``: of the declared keys, where they are not recorded yet."""
        password = state.root_password or inputs.password
        known = {"ssh_key_ids": inputs.ssh_key_ids, "password": inputs.password, "root_password": password}
        return state.model_copy(update=known if fingerprints is None else {**known, "ssh_key_fingerprints": fingerprints})

    @staticmethod
    def _adoptable(context: Context, inputs: ServerInputs, id: str) -> m.Server:
        server = living_server(context, id)
        if server is None:
            raise ResourceError(
                f"adopt_id: there is no living server {id} on this account. Next: correct adopt_id, or leave it out to order one"
            )
        state = from_api(server)
        differing = [
            f"{name} is {getattr(state, name)!r}, not {desired!r}"
            for name, desired in inputs.given().items()
            if name in ("tariff_id", "os", "billing_cycle") and getattr(state, name) not in (None, desired)
        ]
        if differing:
            raise ResourceError(f"adopt_id: server {id} is not the declared one: {'; '.join(differing)}. Next: declare what it is")
        return server

    def wait(self, context: Context, state: ServerState) -> ServerState:
        return self._await(context, state) if state.id.startswith(ORDER_PREFIX) else state

    def settle(self, context: Context, state: ServerState, inputs: ServerInputs) -> ServerState:
        """Wait for the order, then set what an order cannot carry: notes, auto-renew, our tag."""
        if state.id.startswith(ORDER_PREFIX):
            state = self._kept(self._await(context, state), inputs)
            context.ownership.add(context.identity, state.id)
        unkept = state.root_password is None or not (context.keeps_secrets or inputs.password is not None)
        if unkept and inputs.adopt_id is None and not inputs.ssh_key_ids:
            context.warn(
                f"server {state.id}: its generated root password "
                + ("is not returned, since nothing here may keep it" if state.root_password else "was not shown to this run")
                + ". Next: have another one made (with Ansible hosting.cloud.server_password, with Python servers.reset_password)"
            )
        return self._power(context, self._set_late(context, state, inputs), inputs)

    def _set_late(self, context: Context, state: ServerState, inputs: ServerInputs) -> ServerState:
        late = frozenset(inputs.model_fields_set & {"name", "notes", "auto_renew"})
        desired = {name: value for name, value in inputs.given().items() if name in late and getattr(state, name) != value}
        if context.name_is_identity:
            return self._patch(context, state, desired) if desired else state
        # What reads back without the tag is what was written with it, so the tag is written even where nothing else is.
        notes = desired.get("notes", state.notes) or ""
        try:
            return self._patch(context, state, {**desired, "notes": notes})
        except ApiError as error:
            if desired:
                raise
            # Without the tag a lost answer is still found by its key, for seven days.
            context.warn(f"server {state.id}: the ownership tag could not be written: {error}")
            # What another resource's tag stays behind, no recorded tag must keep from being deleted.
            return state if inputs.adopt_id is None else state.model_copy(update={"ownership_tag": None})

    def _await(self, context: Context, state: ServerState) -> ServerState:
        wait = context.poller()
        while True:
            # Everybody who waits shares one list; an order that left it is asked for itself.
            if _order_id(state.id) in pending_orders(context, wait.next * 0.9) and not wait.over:
                context.info(f"server {state.name}: order {_order_id(state.id)} is provisioning")
                wait.pause()
                continue
            order = context.client.orders.get(_order_id(state.id))
            if order.is_failed:
                raise OrderFailed(
                    f"order {order.invoice_id} for server {state.name!r} ended as {order.status}"
                    + (f" ({order.failure_reason})" if order.failure_reason else "")
                    + "; the charge was returned to the balance. Next: run again to order anew"
                )
            if order.is_active and order.server_id:
                server = living_server(context, str(order.server_id))
                if server is None:
                    raise ResourceError(
                        f"server {order.server_id} of order {order.invoice_id} was deleted meanwhile. Next: run again to order anew"
                    )
                return from_api(server, state)
            if wait.over:
                raise WaitTimeout(
                    f"order {order.invoice_id} for server {state.name!r} is still {order.status} after {context.wait_timeout:.0f} s. "
                    "Next: run again; the order is known and will be waited for, not placed again",
                    id=state.id,
                )
            context.info(f"server {state.name}: order {order.invoice_id} is {order.status}")
            wait.pause()

    # --- changing

    def update(self, context: Context, state: ServerState, inputs: ServerInputs, fields: frozenset[str]) -> ServerState:
        if state.id.startswith(ORDER_PREFIX):
            state = self._kept(self._await(context, state), inputs)
        desired = {name: value for name, value in inputs.given().items() if name in fields & {"name", "notes", "auto_renew"}}
        if state.ownership_tag is not None:
            self._must_be_held(context, state)
        if desired:
            state = self._patch(context, state, desired)
            context.save(state)
        if fields & {"os", "ssh_key_ids", "password"}:
            state = self.reinstall(context, state, inputs)
        return self._power(context, state, inputs) if "power" in fields or fields & {"os", "ssh_key_ids", "password"} else state

    @staticmethod
    def _must_be_held(context: Context, state: ServerState) -> None:
        """Raise ``TakenOver`` where a later run has it: writing this state's tag again would let this state delete it."""
        server = living_server(context, state.id)
        tag = split_tag(server.notes)[1] if server else None
        if was_taken_over(state.ownership_tag, tag) == "by a later run":
            raise TakenOver("server", state.id, tag, "nothing was changed")

    def reinstall(self, context: Context, state: ServerState, inputs: ServerInputs) -> ServerState:
        """The same server with another image, keys or password. Sent once: what became of a lost answer is for a person to look at."""
        context.warn(f"server {state.id} is reinstalled with {inputs.os}: its disk is erased")
        body = {name: value for name, value in inputs.given().items() if name in ("password", "ssh_key_ids") and value is not None}
        if "ssh_key_ids" in body:
            body["ssh_key_ids"] = [int(key) for key in body["ssh_key_ids"]]
        fingerprints = fingerprints_of(context, inputs.ssh_key_ids)
        try:
            result = context.client.servers.reinstall(int(state.id), os=inputs.os, **body)
        except CallError as error:
            if not error.outcome_unknown:
                raise
            raise ResourceError(
                f"{error.summary} — whether server {state.id} was reinstalled is not known. Next: look at it before running again: "
                "a run that still shows the change erases the disk once more"
            ) from None
        context.reads.forget("servers")
        shown = result.root_password.reveal() if result.root_password else ""
        password = result.root_password if shown else inputs.password
        if password is None and not inputs.ssh_key_ids:
            context.warn(f"server {state.id}: its new root password was not shown. Next: declare a password, or reset it")
        installed = {
            "os": inputs.os,
            "ssh_key_ids": inputs.ssh_key_ids,
            "ssh_key_fingerprints": fingerprints,
            "password": inputs.password,
            "root_password": password,
        }
        # What follows may fail; that the disk was erased, and with which password it begins again, must not be forgotten.
        context.save(state.model_copy(update={**installed, "os_shown": state.os if state.os != inputs.os else None}))
        state = self.until(context, state, lambda server: server.status in POWER and server.os == inputs.os, poller=120.0)
        state = state.model_copy(update={**installed, "os_shown": None if state.os == inputs.os else state.os})
        context.save(state)
        return state

    def _power(self, context: Context, state: ServerState, inputs: ServerInputs) -> ServerState:
        """Start or stop. Convergent, so a repeated run does no harm."""
        if inputs.power is None or state.power == inputs.power:
            return state
        if state.power is None:
            raise ResourceError(
                f"server {state.id} is {state.status} and cannot be {'started' if inputs.power == 'running' else 'stopped'}. "
                "Next: see why in the cabinet (an unpaid renewal, perhaps), or leave power out"
            )
        action: Literal["start", "stop"] = "start" if inputs.power == "running" else "stop"
        context.client.servers.power(int(state.id), action=action)
        context.reads.forget("servers")
        return self.until(context, state, lambda server: POWER.get(server.status) == inputs.power, poller=60.0).model_copy(
            update={"power": inputs.power}
        )

    @staticmethod
    def until(context: Context, state: ServerState, done: Callable[[m.Server], bool], poller: float) -> ServerState:
        """The server once it is as declared; after ``patience`` seconds as it is, since not every deployment shows it."""
        wait = context.poller(poller)
        while True:
            server = living_server(context, state.id)
            if server is None:
                raise ResourceError(f"server {state.id} was deleted meanwhile. Next: run again")
            # A simulated change is accepted and need not ever show.
            if done(server) or context.client.is_test_key or wait.over:
                return as_written(context, from_api(server, state), state)
            context.info(f"server {state.id}: waiting for the change to show")
            wait.pause()

    @staticmethod
    def _patch(context: Context, state: ServerState, desired: dict[str, Any]) -> ServerState:
        """PATCH what is declared. Whose tag stands behind the notes stays so; where the name is not the identity, it becomes ours."""
        body = {name: value for name, value in desired.items() if value is not None or name == "notes"}
        if "notes" in body:
            tag: str | None = state.ownership_tag or ownership_tag(context.identity)
            if context.name_is_identity:
                server = living_server(context, state.id)
                tag = split_tag(server.notes)[1] if server else None
            else:
                state = state.model_copy(update={"ownership_tag": tag})
            body["notes"] = with_tag(body["notes"] or "", tag) if tag else body["notes"]
        try:
            after = as_written(context, from_api(context.client.servers.update(int(state.id), **body), state), state)
        finally:
            context.reads.forget("servers")
            if "name" in body:
                context.reads.forget("world")
        # A simulated change is answered but need not show: what was accepted is what is so.
        return after.model_copy(update={name: value for name, value in desired.items() if value is not None})

    def adjust_prediction(self, predicted: dict[str, Any], state: ServerState | None) -> dict[str, Any]:
        if state and predicted["name"] != state.name:
            predicted.pop("hostname", None)  # the document leaves open whether the panel's name follows
        if state and predicted["power"] != state.power:
            predicted.pop("status", None)  # a stopped server's status is stopped, and active once it runs again
        return predicted

    # --- removing

    def delete(self, context: Context, state: ServerState) -> None:
        """Delete it, unless its tag shows that it was taken over since: by a later run of the same resource (raises ``TakenOver``), or by
        another resource, with which it stays. Where no tag was recorded, or none is there, it is deleted."""
        if state.id.startswith(ORDER_PREFIX):
            current = self.read(context, state.id, state)
            if current is not None and current.id.startswith(ORDER_PREFIX):
                current = self._await_or_gone(context, current)
            if current is None:
                return
            state = current.model_copy(update={"ownership_tag": state.ownership_tag})
        server = living_server(context, state.id)
        if server is None or (state.ownership_tag is not None and self._stays(context, state, server)):
            return
        along = addresses_along(context, server)
        wait = context.poller()
        while True:
            try:
                # A fresh key each time: a stored failure would otherwise block the deletion for seven days.
                result = context.client.servers.delete(int(state.id), idempotency_key=f"{SCHEME}-delete-{uuid.uuid4().hex}")
            except NotFound:
                return
            except OperationInProgress:
                if wait.over:
                    raise
                context.info(f"server {state.id}: another operation is running")
                wait.pause()
                continue
            except (ServiceState, TransportError, Unavailable, ServerError, Conflict):
                if living_server(context, state.id) is None:
                    return
                raise
            context.reads.forget("servers")
            context.reads.forget("world")
            if result.refunded is not None or along:
                credit = (
                    ""
                    if result.refunded is None
                    else f"{';' if along else ','} {result.refunded} {result.currency or ''}".rstrip() + " credited"
                )
                context.info(f"server {state.id} deleted{along}{credit}")
            return

    @staticmethod
    def _stays(context: Context, state: ServerState, server: m.Server) -> bool:
        """Whether another resource took it over, so that nothing is to be deleted. Raises ``TakenOver``."""
        tag = split_tag(server.notes)[1]
        taken = was_taken_over(state.ownership_tag, tag)
        if taken == "by a later run":
            raise TakenOver("server", state.id, tag)
        if taken == "by another":
            billing = server.billing
            price = f" and costs {billing.price_monthly} {billing.currency or ''}".rstrip() + " a month" if billing else ""
            context.warn(
                f"server {state.id} ({server.name}) stays{price}: another resource took it over, its notes carry that one's tag. "
                "Next: delete it there, if it is not wanted"
            )
        return taken is not None

    def _await_or_gone(self, context: Context, state: ServerState) -> ServerState | None:
        try:
            return self._await(context, state)
        except WaitTimeout:
            raise
        except ResourceError:
            return None


def _order_id(id: str) -> int:
    return int(id.removeprefix(ORDER_PREFIX))


def _expect_order(ordered: Ordered) -> m.Order:
    if ordered.order is None:  # pragma: no cover — Ordered holds a server or an order
        raise ResourceError("an order without server and order")
    return ordered.order


SERVER = ServerResource()
