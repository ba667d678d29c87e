"""Checks whether a deployment does what the API document says: ``pulumi-hosting certify``.

An outside witness: written from the document, it imports nothing of ``api/``, ``client/`` or ``emulator/``.
``document.json`` has every sentence of the document with its checks, or the reason why it has none.
"""

from pulumi_hosting.certify.document import CHECKS, Check
from pulumi_hosting.certify.report import Report, Result
from pulumi_hosting.certify.runner import run
from pulumi_hosting.certify.settings import Clock, Delivery, Receiver, Settings

__all__ = ["CHECKS", "Check", "Clock", "Delivery", "Receiver", "Report", "Result", "Settings", "run"]
