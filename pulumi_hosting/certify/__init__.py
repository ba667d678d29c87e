"""Checks whether a deployment does what the API document says: ``pulumi-hosting certify``.

An outside witness: written from the document, it imports nothing of ``api/``, ``client/`` or ``emulator/``.
``document.json`` has every sentence of the document with its checks, or the reason why it has none.
"""

from pulumi_hosting.certify.document import CHECKS, CheckFacts
from pulumi_hosting.certify.report import Conformance, Finding
from pulumi_hosting.certify.runner import run
from pulumi_hosting.certify.settings import RunSettings, WaitingClock, WebhookDelivery, WebhookReceiver

__all__ = [
    "CHECKS",
    "CheckFacts",
    "Conformance",
    "Finding",
    "RunSettings",
    "WaitingClock",
    "WebhookDelivery",
    "WebhookReceiver",
    "run",
]
