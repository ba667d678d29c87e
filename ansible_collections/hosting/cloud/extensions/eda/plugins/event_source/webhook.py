# Copyright: (c) 2026, the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

# ansible-rulebook loads this file by its path. The receiver itself is pulumi_hosting.webhooks.receiver.

DOCUMENTATION = r"""
---
module: webhook
short_description: Receive webhook events of a host that implements the Hosting Client API v1
description:
  - Listens for webhook deliveries, checks the time of each and the signature of its raw body, and hands the
    event to the rules.
  - It writes every event to O(state_file) before it acknowledges the delivery, and marks it there once the
    rules have it. If a crash or a restart left an event unmarked, the next start hands it over. A marked
    event is never handed over again, however often it is delivered.
  - Answers 200 for a new event and for a known one, 401 for a delivery that cannot be trusted, 404 for
    another path, 405 for another method, 413 for a body above 64 KB, and 503 when the event cannot be kept at
    the moment (the service then tries again).
  - At most 100 connections are open at a time. One more closes the one that has been silent longest.
    A connection has 10 seconds to send the head of its first request, TLS handshake included, and 8 seconds
    to send the body. It is closed after 75 seconds without another request.
  - The service delivers to public https addresses only. Put a proxy that terminates TLS in front of the
    source, or set O(certfile).
  - An event has C(payload), the envelope as it was delivered (V(id), V(type), V(created_at), V(livemode),
    V(account_id), V(api_version), V(data.object), V(data.previous), V(resource)), and C(meta) with V(uuid)
    (the id of the event), V(endpoint), V(headers), V(received_at) and V(via) (V(delivery) or
    V(reconciliation)).
  - Neither the service nor the source guarantees an order. Compare C(payload.created_at) if it matters.
version_added: 0.1.0
author:
  - The pulumi-hosting authors (@pulumi-hosting)
requirements:
  - python >= 3.11
  - pulumi-hosting, in the version that requirements.txt of the collection names
options:
  host:
    description: The address to listen on.
    type: str
    default: 127.0.0.1
  port:
    description: The port to listen on. V(0) picks a free one and logs it.
    type: int
    required: true
  path:
    description: The path of the subscription's URL.
    type: str
    default: /
  secret:
    description:
      - The subscription's C(whsec_…), or several during a rotation. Use a variable of the rulebook, not the
        text itself.
      - If neither O(secret) nor O(secret_file) is set, the environment variable E(HOSTING_WEBHOOK_SECRET) is
        read; separate several with commas. Every playbook that the rules start sees the environment, and
        ansible-runner writes it into its artifacts. O(secret_file) keeps the secret out of both.
    type: list
    elements: str
  secret_file:
    description: A file with one secret on each line, read at each delivery, so a rotation needs no restart.
    type: path
  tolerance:
    description: Seconds that the time of a delivery may be off. At most V(300), the window of the API.
    type: int
    default: 300
  state_file:
    description:
      - The file that keeps events (SQLite, readable only by its owner). One source at a time uses it. Keep it
        on a disk that outlives the rulebook.
      - Of a marked event only the id stays there, for 31 days after the event was last seen.
      - Default is C(hosting/webhook-<port>.sqlite) in C($XDG_STATE_HOME), else in C(~/.local/state).
    type: path
  certfile:
    description: A certificate chain in PEM form, to answer https.
    type: path
  keyfile:
    description: The private key of O(certfile), unless that file holds it.
    type: path
  subscription:
    description:
      - The id of the subscription. With it the source starts by asking for deliveries that never arrived, and
        hands over their events.
      - Deliveries that no receiver accepted always count, accepted ones only if they are younger than
        O(state_file).
      - Costs one request, one for every 100 deliveries, and one for each missed event.
    type: int
  lookback:
    description: Seconds. Older missed events are ignored. The service forgets them after 30 days.
    type: int
    default: 2592000
  api_key:
    description: A live key with C(webhooks:manage), for O(subscription). Default is E(HOSTING_API_KEY).
    type: str
  base_url:
    description: The address of the API for O(subscription), ending in C(/v1). Default is E(HOSTING_BASE_URL).
    type: str
  ca_file:
    description: Certificates to trust for O(base_url) instead of the usual ones, in PEM form.
    type: path
  feedback:
    description:
      - Mark an event only when the rule engine confirms it, not when it is in the engine's queue. The next
        start hands over every event that was never confirmed.
      - ansible-rulebook allows this only with C(--persistence-id).
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: The secret comes from the environment (HOSTING_WEBHOOK_SECRET)
  hosting.cloud.webhook:
    port: 5000
    path: /hosting
- name: Two secrets while one replaces another, and events that were missed while the rulebook was down
  hosting.cloud.webhook:
    host: 0.0.0.0
    port: 5000
    certfile: /etc/ssl/hooks/fullchain.pem
    keyfile: /etc/ssl/hooks/privkey.pem
    secret_file: /run/secrets/hosting-webhook
    state_file: /var/lib/rulebook/hosting.sqlite
    subscription: 17
"""

import asyncio
from typing import Any, Protocol

from pulumi_hosting.webhooks.receiver import ReceivedEvent, Receiver, ReceiverOptions


class EventQueue(Protocol):
    """The queue of ansible-rulebook. It is bounded: ``put`` returns when the rules have room for the
    event."""

    async def put(self, event: dict[str, Any], /) -> None:
        """Hand over an event."""


async def main(queue: EventQueue, args: dict[str, Any]) -> None:
    """Receive until cancelled. Raises ``ConfigurationError`` for options that cannot be used; other failures
    are retried."""
    options = {name: value for name, value in args.items() if name not in ("feedback", "eda_feedback_queue")}
    receiver = Receiver(ReceiverOptions.from_values(options))

    async def hand_over(received: ReceivedEvent) -> None:
        meta = {
            "uuid": received.event.id,
            "endpoint": options.get("path", "/"),
            "headers": received.headers,
            "received_at": received.received_at.isoformat().replace("+00:00", "Z"),
            "via": received.via,
        }
        await queue.put({"payload": received.payload, "meta": meta})

    async def confirm(feedback: asyncio.Queue[dict[str, Any]]) -> None:
        while True:
            event = await feedback.get()
            await receiver.acknowledge(str(event.get("meta", {}).get("uuid")))

    feedback: asyncio.Queue[dict[str, Any]] | None = args.get("eda_feedback_queue")
    if feedback is None:
        await receiver.run(hand_over)
    else:
        confirming = asyncio.create_task(confirm(feedback))
        try:
            await receiver.run(hand_over, acknowledge=False)
        finally:
            confirming.cancel()
