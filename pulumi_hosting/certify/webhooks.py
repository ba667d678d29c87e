"""Subscriptions and deliveries, with a receiver of our own."""

import hmac
import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any

from pulumi_hosting.certify import shapes as s
from pulumi_hosting.certify.answers import HttpAnswer, mapping
from pulumi_hosting.certify.session import LIVE, Exchanges
from pulumi_hosting.certify.settings import WebhookDelivery, WebhookReceiver

_EVENTS = {
    "server": "created suspended unsuspended terminated reinstalled",
    "invoice": "created paid overdue",
    "balance": "low",
    "domain": "registered expiring renewed",
    "key": "created revoked",
}
EVENTS = [*(f"{kind}.{event}" for kind, events in _EVENTS.items() for event in events.split()), "ping"]
_WAIT_SECONDS = 120
_RESUMED = "the run was resumed, so deliveries of its first part are missing"
_TOLERANCE = 300


class Webhooks:
    """One subscription, from its creation to its removal."""

    def __init__(
        self, run: Exchanges, call: Callable[..., HttpAnswer], receiver: WebhookReceiver, made: HttpAnswer
    ) -> None:
        self.run, self.call, self.receiver = run, call, receiver
        self.id, self.secrets = made.body.get("id"), [str(made.body.get("secret"))]
        self.path = f"/webhooks/{self.id}"

    @classmethod
    def subscribe(cls, run: Exchanges, call: Callable[..., HttpAnswer]) -> "Webhooks | None":
        receiver = run.settings.receiver
        _refusals(run, call)
        if receiver is None:
            return None
        receiver.answer = 200
        wanted = [event for event in EVENTS if event != "ping"]
        body = {"url": receiver.url, "events": wanted, "description": f"certify {run.id}"}
        made = call("POST", "/webhooks", json_body=body)
        run.status("webhooks.subscription", made, 200, 201, shape=s.SUBSCRIPTION)
        secret = str(made.body.get("secret"))
        run.expect("webhooks.secret", secret.startswith("whsec_"), "the secret does not start whsec_", made)
        same = sorted(made.body.get("events") or []) == sorted(wanted)
        run.expect("webhooks.subscription", same, "events are not those that were sent", made)
        if not made.ok:
            return None
        run.made(
            f"webhook subscription {made.body.get('id')}", "DELETE", f"/webhooks/{made.body['id']}", LIVE
        )
        listed = call("GET", "/webhooks")
        own = [entry for entry in listed.items if entry.get("id") == made.body["id"]]
        run.expect("webhooks.subscription", own, "the subscription is not listed", listed)
        run.expect(
            "webhooks.secret", not any(entry.get("secret") for entry in own), "it is shown again", listed
        )
        for entry in listed.items:  # that of a run which was killed
            is_certify = entry.get("url") == receiver.url and str(entry.get("description")).startswith(
                "certify "
            )
            if is_certify and entry.get("id") != made.body["id"]:
                run.call("DELETE", f"/webhooks/{entry['id']}", LIVE)
        hooks = cls(run, call, receiver, made)
        hooks.ping()
        return hooks

    def ping(self) -> None:
        """A test is delivered at once, and its answer says what the receiver said."""
        seen = len(self.receiver.deliveries())
        answer = self.call("POST", f"{self.path}/test")
        self.run.status("webhooks.test", answer, 200, shape=s.TEST_RESULT)
        self.run.has("webhooks.test", answer, ok=True, status=200)
        if answer.replayed:
            return
        arrived = self.receiver.deliveries()[seen:]
        pings = [delivery for delivery in arrived if _type(delivery) == "ping"] or arrived
        if self.run.expect("webhooks.test", pings, "the ping did not arrive before the answer", answer):
            if self.run.same("events.ping", "the type", _type(pings[0]), "ping", answer):
                self._check(pings[0])
            expected = {"subscription_id": self.id, "message": "pong"}
            self.run.same("events.ping", "data.object", _object(pings[0]), expected, answer)

    def wait(self, event_type: str, subject: object = None) -> list[WebhookDelivery]:
        """The deliveries of this type, for this object if one is given, once there is one."""

        def look() -> list[WebhookDelivery]:
            return [
                delivery
                for delivery in self.receiver.deliveries()
                if _type(delivery) == event_type and subject in (None, _object(delivery).get("id"))
            ]

        return self.run.until(look, _WAIT_SECONDS, 2)

    def _attempts(self, event_id: object) -> list[WebhookDelivery]:
        return [one for one in self.receiver.deliveries() if _event(one).get("id") == event_id]

    def retried(self, event_type: str, shape: s.Shape) -> None:
        """The first attempt was answered with 500: the second follows after 60 s, with identical bytes."""
        run, receiver = self.run, self.receiver
        if run.resumed:
            receiver.answer = 200
            run.skip_areas(_RESUMED, f"{_check_of(event_type)} webhooks.")
            return
        first = self.wait(event_type)
        receiver.answer = 200
        if not run.expect(_check_of(event_type), first, f"no {event_type} arrived"):
            return
        self.envelope(first[0], shape)
        id = _event(first[0]).get("id")
        attempts = run.until(partial(self._attempts, id), _WAIT_SECONDS, 1, lambda seen: len(seen) > 1)
        if not run.expect("webhooks.retry", len(attempts) > 1, "a failed delivery is not retried in 120 s"):
            return
        self._check(attempts[1])
        times = [int(one.headers.get("x-webhook-timestamp", "0")) for one in attempts[:2]]
        apart = times[1] - times[0]
        run.expect("webhooks.retry", 55 <= apart <= 75, f"the first retry follows after {apart} s, not 60")
        self._same_bytes(attempts[0], attempts[1])
        self._log(str(id))

    def _same_bytes(self, one: WebhookDelivery, other: WebhookDelivery) -> None:
        run = self.run
        run.expect("webhooks.same-bytes", one.body == other.body, "the bytes of a second attempt differ")
        ids = [delivery.headers.get("x-webhook-id") for delivery in (one, other)]
        run.same("webhooks.id-header", "X-Webhook-Id of a second attempt", ids[1], ids[0], _of(other))

    def _log(self, event_id: str) -> None:
        run = self.run
        run.clock.sleep(1)
        listed = run.read("webhooks.deliveries", f"{self.path}/deliveries?limit=100", LIVE, shape=s.PAGE)
        run.each("webhooks.deliveries", listed, s.DELIVERY)
        own = [
            entry
            for entry in listed.items
            if event_id in (entry.get("event_id"), mapping(entry.get("payload")).get("id"))
        ]
        if own:
            run.same("webhooks.deliveries", "attempts", own[0].get("attempts"), 2, listed)
            status = own[0].get("status", "delivered" if own[0].get("delivered_at") else "pending")
            run.same("webhooks.deliveries", "status", status, "delivered", listed)
        for name, value in (("event_type", "invoice.created"), ("status", "delivered")):
            found = run.get(f"{self.path}/deliveries?limit=100&{name}={value}", LIVE)
            others = [entry for entry in found.items if entry.get(name, value) != value]
            run.expect("webhooks.delivery-filters", found.ok and not others, f"{name} does not filter", found)
            run.expect("webhooks.delivery-filters", found.items, f"{name} finds nothing", found)
        none = run.get(f"{self.path}/deliveries?limit=100&status=dead", LIVE)
        run.expect("webhooks.delivery-filters", none.ok and not none.items, "none is dead", none)
        if own:
            run.needs_scope("webhooks:manage", "GET", f"/webhooks/deliveries/{own[0]['id']}")
            self._redelivered(own[0], event_id)

    def _redelivered(self, entry: dict[str, Any], event_id: str) -> None:
        before = self._attempts(event_id)
        answer = self.run.call("POST", f"/webhooks/deliveries/{entry['id']}/redeliver", LIVE)
        if answer.is_(409):
            return
        self.run.status("webhooks.redeliver", answer, 200, 202)
        self.run.expect("webhooks.redeliver", answer.body.get("status"), "there is no status", answer)
        attempts = partial(self._attempts, event_id)
        found = self.run.until(attempts, _WAIT_SECONDS, 2, lambda seen: len(seen) > len(before))
        if self.run.expect("webhooks.redeliver", len(found) > len(before), "it was not sent again", answer):
            self._same_bytes(before[0], found[-1])
            self._check(found[-1])

    def envelope(self, delivery: WebhookDelivery, shape: s.Shape) -> None:
        """The envelope, and the object in it."""
        self._check(delivery)
        self.run.shape(_check_of(_type(delivery)), _object(delivery), shape, _of(delivery))

    def expect(self, event_type: str, shape: s.Shape, subject: object = None) -> None:
        """An event of this type arrives, for this object if one is given."""
        check = _check_of(event_type)
        if self.run.resumed:
            self.run.skip(_RESUMED, check)
            return
        found = self.wait(event_type, subject=subject)
        if self.run.expect(check, found, f"no {event_type} arrived in {_WAIT_SECONDS} s"):
            self.envelope(found[-1], shape)

    def finish(self) -> None:
        """The events of the order and the deletion, the new secret, switching off and on, and the removal."""
        run = self.run
        self.receiver.answer = 200
        if run.ordered:
            self.expect("server.created", s.SERVER)
            self.expect("invoice.paid", s.INVOICE)
            self.expect("server.terminated", s.SERVER)
        rotated = self.call("POST", f"{self.path}/rotate-secret")
        secret = str(rotated.body.get("secret"))
        run.status("webhooks.rotate", rotated, 200)
        is_new = secret.startswith("whsec_") and secret not in self.secrets
        run.expect("webhooks.rotate", is_new, "there is no new secret", rotated)
        if rotated.ok:
            self.secrets = [secret]
            self.ping()
        off = self.call("PATCH", self.path, json_body={"active": False})
        listed = self.call("GET", "/webhooks")
        shown = [entry.get("active") for entry in listed.items if entry.get("id") == self.id]
        if off.ok:
            run.same("webhooks.patch", "active in the list", shown, [False], listed)
            on = self.call("PATCH", self.path, json_body={"active": True})
            run.status("webhooks.patch", on, 200, shape=s.SUBSCRIPTION)
            run.has("webhooks.patch", on, active=True)
        for method in ("GET", "DELETE"):
            run.needs_scope("webhooks:manage", method, self.path)
        if self.call("DELETE", self.path).ok:
            run.removed(self.path)

    def _check(self, delivery: WebhookDelivery) -> None:
        """Signature, headers and envelope of one delivery."""
        run, headers, event, shown = self.run, delivery.headers, _event(delivery), _of(delivery)
        stamp = headers.get("x-webhook-timestamp", "")
        signed = f"{stamp}.".encode() + delivery.body
        expected = "v1=" + hmac.new(self.secrets[-1].encode(), signed, sha256).hexdigest()
        given = headers.get("x-webhook-signature", "")
        holds = expected in [part.strip() for part in given.split(",")]
        run.expect("webhooks.signature", holds, f"the signature {given[:12]}… is not right", shown)
        sent_at = float(stamp) if stamp.isdigit() else 0.0  # after the event, and before it is looked at here
        created = str(event.get("created_at"))
        began = datetime.fromisoformat(created).timestamp() if s.is_time(created) else 0.0
        is_now = began - _TOLERANCE <= sent_at <= run.clock.now() + _TOLERANCE
        run.expect("webhooks.timestamp", is_now, f"X-Webhook-Timestamp is {stamp!r}", shown)
        run.same("webhooks.id-header", "X-Webhook-Id", headers.get("x-webhook-id"), event.get("id"), shown)
        name = headers.get("x-webhook-event")
        run.same("webhooks.event-header", "X-Webhook-Event", name, event.get("type"), shown)
        agent = headers.get("user-agent", "")
        has_agent = re.fullmatch(r".+-Webhooks/1\.0", agent)
        run.expect("webhooks.user-agent", has_agent, f"User-Agent is {agent!r}", shown)
        run.shape("webhooks.envelope", event, s.EVENT, shown)
        is_id = str(event.get("id")).startswith("evt_")
        run.expect("webhooks.envelope", is_id, "id does not start evt_", shown)
        run.same("webhooks.envelope", "livemode", event.get("livemode"), True, shown)
        run.same("webhooks.envelope", "api_version", event.get("api_version"), "1", shown)
        known = event.get("type") in EVENTS
        run.expect("webhooks.envelope", known, f"the type {event.get('type')!r} is not listed", shown)


def _refusals(run: Exchanges, call: Callable[..., HttpAnswer]) -> None:
    listed = call("GET", "/webhooks/events")
    run.status("webhooks.events", listed, 200)
    missing = set(EVENTS) - {entry.get("type") for entry in listed.items} - {"ping"}
    run.expect("webhooks.events", not missing, f"the list lacks {sorted(missing)}", listed)
    for url in ("http://hooks.example.org/", "https://127.0.0.1/", "https://10.0.0.1/", "certify"):
        _refused(run, call, call("POST", "/webhooks", json_body={"url": url, "events": ["invoice.paid"]}))
    body = {"url": "https://hooks.example.org/", "events": ["certify.none"]}
    _refused(run, call, call("POST", "/webhooks", json_body=body))


def _refused(run: Exchanges, call: Callable[..., HttpAnswer], answer: HttpAnswer) -> None:
    run.status("webhooks.refusals", answer, 400)
    if answer.ok:
        call("DELETE", f"/webhooks/{answer.body.get('id')}")


def _event(delivery: WebhookDelivery) -> dict[str, Any]:
    return _of(delivery).body


def _object(delivery: WebhookDelivery) -> dict[str, Any]:
    return mapping(mapping(_event(delivery).get("data")).get("object"))


def _type(delivery: WebhookDelivery) -> str:
    """Of the event; if it has none, that of the header."""
    return str(_event(delivery).get("type") or delivery.headers.get("x-webhook-event"))


def _of(delivery: WebhookDelivery) -> HttpAnswer:
    """A delivery in the place of an answer, for the report."""
    return HttpAnswer("a delivery", 0, delivery.headers, delivery.body)


def _check_of(event_type: str) -> str:
    return f"events.{event_type.replace('.', '-')}"
