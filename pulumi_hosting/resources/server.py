"""A virtual server (API document, "Servers" and "Orders").

Ordered once (see ``exactly_once.server_order``), waited for through a 202, changed in place if the API can
(name, notes, auto-renew), replaced if it cannot. The id is ``order:<invoice_id>`` while only its order is
known. Inputs and state are in ``server_fields``; its optional powers are in ``server_powers``.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pulumi_hosting.api import models as m
from pulumi_hosting.api.values import id_number
from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.exactly_once import catalog_reads, generation, key_users, order_facts
from pulumi_hosting.exactly_once import ownership_tag as tags
from pulumi_hosting.exactly_once.generation import ORDER_PREFIX
from pulumi_hosting.exactly_once.server_order import Ordered, ServerOrder
from pulumi_hosting.exactly_once.server_search import REPORT_AGE, tag_identity, tagged_elsewhere
from pulumi_hosting.resources import server_calls, ssh_ready
from pulumi_hosting.resources.base import Resource
from pulumi_hosting.resources.fingerprints import added, fingerprints, installed_keys
from pulumi_hosting.resources.server_fields import (
    POWER,
    ServerInputs,
    ServerState,
    from_api,
    provisional,
)
from pulumi_hosting.resources.takeover import Takeover
from pulumi_hosting.session.account_snapshot import ORDERS_AND_SERVERS
from pulumi_hosting.session.errors import NotOurs, OrderFailed, ResourceError, WaitTimeout
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text


class ServerBase(Resource[ServerInputs, ServerState]):
    """The four methods of a server."""

    kind: ClassVar[str] = "server"
    title: ClassVar[str] = "server"
    default_name = True
    scopes: ClassVar = {
        "read": ("servers:read",),
        "create": ("servers:read", "servers:order", "servers:manage"),
        "update": ("servers:read", "servers:manage"),
        "delete": ("servers:read", "servers:delete"),
    }

    def is_id(self, id: str) -> bool:
        return id_number(id.removeprefix(ORDER_PREFIX)) is not None

    def spared_scopes(self, request: Request, desired: Mapping[str, Any]) -> frozenset[str]:
        """A tag alone is not worth a refusal if no state depends on it."""
        late = (*ServerInputs.late(), "power", "adopt_id")
        is_tagged_only = not any(desired.get(name) is not None for name in late)
        return frozenset({"servers:manage"} if request.name_is_identity and is_tagged_only else ())

    def read(self, request: Request, id: str, last: ServerState | None = None) -> ServerState | None:
        """Raises ``NotOurs`` if the id is that of another server than the recorded one."""
        if id.startswith(ORDER_PREFIX):
            order = request.client.orders.get(order_facts.order_id(id))
            if not (order.is_active and order.server_id):
                if not order_facts.has_ended(request, order):
                    return provisional(order, last)
                if last is not None:
                    again = "another is ordered if it is still declared"
                    then = again if order.is_failed else order_facts.after_order(request, order)
                    request.warn(f"{order_facts.how_order_ended(request, order, last.name)}; {then}")
                return None
            id = str(order.server_id)
        server: m.Server | None = request.by_id(ORDERS_AND_SERVERS, "list_servers", id, REPORT_AGE)
        if server is None or server.is_gone:
            server = order_facts.server_by_id(request, id)
            if server is None or server.is_gone:
                self._report_end(request, id, server, last)
                return None
        state = from_api(server, last, is_test=request.client.is_test_key, keeps_tag=False)
        tag = self._tag_to_record(request, last, state.id, state.ownership_tag, state.created_at)
        return state.model_copy(update={"ownership_tag": tag})

    @staticmethod
    def _report_end(request: Request, id: str, server: m.Server | None, last: ServerState | None) -> None:
        """Say that it is gone, and what follows."""
        if last is None or not last.status or not server_calls.is_checked(request, last):
            return
        key_users.forget(request, id)
        ended = server_calls.how_it_ended(id, server, last.name, last.next_due_at)
        other = tagged_elsewhere(request, REPORT_AGE)
        if request.adopts:
            then = f"adopt_id names it, so none is ordered. {server_calls.WITHOUT_ADOPTED}"
        elif other is None:
            then = "a new one is ordered if the program declares it"
        else:
            then = (
                f"{server_calls.described(other)}: {request.client.words.apply} takes it over or names the "
                "setting that does, and before that no destroy deletes it"
            )
        request.warn(f"{ended}; {then}")

    @staticmethod
    def _tag_to_record(
        request: Request, last: ServerState | None, id: str, tag: str | None, created_at: str | None
    ) -> str | None:
        """The tag that is there, if it is this identity's, or if nothing was recorded before: an import. That
        of a later run, or of another resource, is not recorded, so that no deletion fits it.
        """
        recorded = last.ownership_tag if last is not None else None
        is_own = request.name_is_identity or tags.is_tag_of(tag, request.identity)
        if last is None or not server_calls.is_checked(request, last):
            return tag if is_own else recorded
        verdict = server_calls.must_be_readable(request, last, tag, created_at)
        if verdict.reason == "later run":
            request.warn(
                f"server {id}: {verdict.why}; from here it is not deleted any more, and a deletion "
                "says how to leave it to that run, or to take it back"
            )
        return tag if (is_own and verdict.decision == "allowed") or not last.status else recorded

    def create(self, request: Request, inputs: ServerInputs) -> ServerState:
        keys = installed_keys(request, inputs.ssh_key_ids)
        if inputs.adopt_id is not None:
            server = server_calls.adoptable_server(request, inputs.adopt_id, inputs.given())
            state = self._taken(request, server, from_api(server), inputs)
        else:
            server_calls.must_have_scope_for(request, inputs)
            ssh_ready.must_be_able(request, inputs.ready, f"server {inputs.name!r}")
            sent = inputs.model_copy(update={"ssh_key_ids": self._sent_keys(request, inputs.ssh_key_ids)})
            others = inputs.tariff_id[1:] if isinstance(inputs.tariff_id, list) else ()
            order = ServerOrder(request, sent.order_body(), inputs.order_attempt or 0, others)
            state = self._from_order(request, order.carry_out(), inputs)
        key_users.record(request, added(keys))
        return state.model_copy(update={"ssh_key_fingerprints": fingerprints(keys)})

    def _from_order(self, request: Request, ordered: Ordered, inputs: ServerInputs) -> ServerState:
        made = ordered.made
        state = provisional(made) if isinstance(made, m.Order) else from_api(made)
        extra = {
            "invoice_id": as_text(ordered.invoice_id),
            # Without a state to remember it, a charge is one of this run, and a replay is not.
            "charged": None
            if request.name_is_identity and ordered.found and ordered.attempts == 1
            else as_text(ordered.charged),
            "root_password": ordered.root_password,
        }
        state = state.model_copy(update=extra)
        if ordered.found:
            if ordered.attempts == 1:  # else this run's own first request may have made it
                Takeover(state, ordered.reason, made.created_at, title=self.title).announce(request)
            request.ownership.add(request.identity, state.id)
            if ordered.by_name:  # whose it is nothing shows, so the tag that it has stays
                return self._kept(state, inputs)
            return self._taken(request, ordered.server, state, inputs)
        request.ownership.add(request.identity, state.id)
        request.made.add(state.id)
        own = tags.ownership_tag(request.identity, inputs.order_attempt or 0)
        return self._kept(state.model_copy(update={"name": inputs.name, "ownership_tag": own}), inputs)

    @staticmethod
    def _sent_keys(request: Request, ids: list[str] | None) -> list[str] | None:
        """The ids of keys that an order is sent. A simulated one is not sent those of simulated keys: no
        document says that it would know them.
        """
        if not ids or not request.client.is_test_key:
            return ids
        real = {str(key.id) for key in catalog_reads.ssh_keys(request)}
        return [id for id in ids if id in real]

    def _taken(
        self, request: Request, server: m.Server | None, state: ServerState, inputs: ServerInputs
    ) -> ServerState:
        """The state of a server that is taken over: with the tag that is going to be written, so that no
        earlier state's deletion fits.
        """
        request.taken_over.add(state.id)
        tag = tags.next_tag(tags.split_tag(server.notes)[1] if server else None, request.identity)
        return self._kept(state.model_copy(update={"ownership_tag": tag}), inputs)

    @staticmethod
    def _kept(state: ServerState, inputs: ServerInputs) -> ServerState:
        """With what was declared and the API never shows."""
        password = state.root_password or inputs.password
        known = {"ssh_key_ids": inputs.ssh_key_ids, "password": inputs.password, "root_password": password}
        return state.model_copy(update=known)

    def update(
        self, request: Request, state: ServerState, inputs: ServerInputs, fields: frozenset[str]
    ) -> ServerState:
        if state.id.startswith(ORDER_PREFIX):
            state = self.ordered(request, state, inputs)
        desired = inputs.given(fields & inputs.settings())
        if server_calls.is_checked(request, state):
            server = server_calls.server_lately(request, state.id)
            if server is None:
                server_calls.must_stand_nowhere_else(request, state, "changed")
            else:
                verdict = server_calls.must_be_this_server(request, state, server, "changed")
                state = state.model_copy(update={"notes": tags.split_tag(server.notes)[0]})
                if verdict.decision == "repair":
                    desired.setdefault("notes", state.notes)
        elif desired:
            state = self._as_it_is(request, state)
        if desired:
            state = self.patch(request, state, desired)
            request.save(state)
        rebuilt, former = bool(fields & {"os", "ssh_key_ids", "password"}), state.ssh_host_key
        if rebuilt:
            ssh_ready.must_be_able(request, inputs.ready, f"server {inputs.name!r}")
            state = self.reinstall(request, state, inputs)
        if rebuilt or "power" in fields:
            state = self.set_power(request, state, inputs)
        if rebuilt or "ready" in fields:
            state = self.until_ready(request, state, inputs.ready, former if rebuilt else None)
        return state

    def ordered(self, request: Request, state: ServerState, inputs: ServerInputs) -> ServerState:
        """The state once the order is carried out. Raises what ``wait_for_order`` raises."""
        server = order_facts.wait_for_order(request, state.id, state.name)
        generation.arrived(request, str(server.id))
        return self._kept(from_api(server, state), inputs)

    @staticmethod
    def _as_it_is(request: Request, state: ServerState) -> ServerState:
        """The state before a change that may write a tag: with the notes that stand there now. If nothing but
        its name says which server is meant, the tag that stands there now is carried on."""
        server = order_facts.living_server(request, state.id)
        if server is None:
            return state
        now = from_api(server, state, is_test=request.client.is_test_key)
        there = tags.split_tag(server.notes)[1] if request.name_is_identity else state.ownership_tag
        return now.model_copy(update={"ownership_tag": there})

    @staticmethod
    def patch(request: Request, state: ServerState, desired: dict[str, Any]) -> ServerState:
        """PATCH what is declared. If the server has no tag, or one that a new name makes another, the tag is
        written with it; another's stays."""
        empty = ServerInputs.clears()
        body: dict[str, Any] = {
            name: empty.get(name) if value is None else value
            for name, value in desired.items()
            if value is not None or name in empty
        }
        renamed, takes = tag_identity(request, body.get("name", state.name)), not request.name_is_identity
        tag = tags.carried_on(state.ownership_tag, tag_identity(request, state.name), renamed, takes=takes)
        if "notes" in body or tag != state.ownership_tag:
            body["notes"] = tags.with_tag(body.get("notes", state.notes) or "", tag)
            state = state.model_copy(update={"ownership_tag": tag})
        changed = request.client.servers.update(int(state.id), **body)
        after = from_api(changed, state, is_test=request.client.is_test_key)
        # A simulated change is answered but need not show: what was accepted is what is so.
        return after.model_copy(update={name: value for name, value in desired.items() if value is not None})

    def reinstall(self, request: Request, state: ServerState, inputs: ServerInputs) -> ServerState:
        """The same server with another image, keys or password."""
        body: dict[str, Any] = {}
        if inputs.ssh_key_ids is not None:
            body["ssh_key_ids"] = [int(key) for key in inputs.ssh_key_ids]
        if inputs.password is not None:
            body["password"] = inputs.password
        keys = installed_keys(request, inputs.ssh_key_ids)
        result = server_calls.send_reinstall(request, state.id, inputs.os, body)
        key_users.record(request, added(keys))
        password = result.root_password or inputs.password
        if password is None and not inputs.ssh_key_ids:
            request.warn(
                f"server {state.id}: its new root password was not shown. Next: "
                "declare a password, or reset it"
            )
        installed = {
            "os": inputs.os,
            "ssh_key_ids": inputs.ssh_key_ids,
            "ssh_key_fingerprints": fingerprints(keys),
            "password": inputs.password,
            "root_password": password,
            "ready": None,
            "ssh_host_key": None,
        }
        # What follows may fail. That the disk was erased, and the new password, must be in the state by then.
        request.save(
            state.model_copy(update={**installed, "os_shown": state.os if state.os != inputs.os else None})
        )
        state = self.until(
            request, state, lambda server: server.status in POWER and server.os == inputs.os, seconds=120.0
        )
        state = state.model_copy(
            update={**installed, "os_shown": None if state.os == inputs.os else state.os}
        )
        request.save(state)
        return state

    def set_power(self, request: Request, state: ServerState, inputs: ServerInputs) -> ServerState:
        """Start or stop it. A repeated run does no harm."""
        if inputs.power is None or state.power == inputs.power:
            return state
        starts = inputs.power == "running"
        request.client.servers.power(int(state.id), action="start" if starts else "stop")
        after = self.until(request, state, lambda server: POWER.get(server.status) == inputs.power, 60.0)
        return after.model_copy(update={"power": inputs.power})

    @staticmethod
    def until_ready(
        request: Request, state: ServerState, ready: str | None, former: str | None = None
    ) -> ServerState:
        """The state once it answers as it is to be ``ready``, with its host key. ``former``: the key of the
        system before. Raises what ``ssh_ready.host_key`` raises."""
        if ready is None:
            return state
        request.save(state)
        key = ssh_ready.host_key(request, state, former)
        return state.model_copy(update={"ready": ready, "ssh_host_key": key})

    @staticmethod
    def until(
        request: Request, state: ServerState, done: Callable[[m.Server], bool], seconds: float
    ) -> ServerState:
        """The state once ``done``, or after ``seconds``."""
        there = server_calls.wait_until(request, state.id, done, seconds)
        return from_api(there, state, is_test=request.client.is_test_key)

    def delete(self, request: Request, state: ServerState) -> None:
        """Delete it. Raises ``NotOurs`` if it was taken over, if it is not the recorded one, or if it is gone
        and another one carries this resource's tag."""
        if state.id.startswith(ORDER_PREFIX):
            current = self._ordered_or_gone(request, state)
            if current is None:
                return
            state = current.model_copy(update={"ownership_tag": state.ownership_tag})
        server = order_facts.living_server(request, state.id)
        if server is None:
            request.gone.add(state.id)
            if server_calls.is_checked(request, state):
                server_calls.must_stand_nowhere_else(request, state, "deleted")
        else:
            if server_calls.is_checked(request, state):
                server_calls.must_be_this_server(request, state, server, "deleted")
            server_calls.delete_server(request, server)
        generation.is_over(request, state.id)
        key_users.forget(request, state.id)

    def after_failed_deletion(self, request: Request, id: str, error: HostingError) -> str | None:
        """What was declared to go with the server, which is there as before. Of another server than the
        recorded one nothing is known, and with an order nothing goes yet."""
        if id.startswith(ORDER_PREFIX):
            return None
        if isinstance(error, NotOurs) and error.reason in ("object", "elsewhere"):
            return None
        return server_calls.left_with_server(request, id, error)

    @staticmethod
    def _ordered_or_gone(request: Request, state: ServerState) -> ServerState | None:
        """The server of an order; None if none will come and nothing of its charge is kept."""
        try:
            return from_api(order_facts.wait_for_order(request, state.id, state.name), state)
        except (OrderFailed, WaitTimeout):
            order_facts.forget_order(request, state.id, state.name)
        except ResourceError:  # the server was deleted
            pass
        return None
