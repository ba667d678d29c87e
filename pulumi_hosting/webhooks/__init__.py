"""Webhooks of the hosting company: verify single deliveries, or run a receiver. See the API document,
"Events".

- :mod:`pulumi_hosting.webhooks.signature`: verify, parse and sign deliveries in a web application of your
  own. Its names stand here.
- :mod:`pulumi_hosting.webhooks.receiver`: a complete receiver, with its HTTP server and a store that loses
  and repeats no event.
"""

from pulumi_hosting.webhooks.signature import (
    EVENT_HEADER,
    ID_HEADER,
    MAX_BODY_BYTES,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    TOLERANCE_SECONDS,
    Headers,
    Secrets,
    parse,
    sign,
    verify,
    verify_signature,
)

__all__ = [
    "EVENT_HEADER",
    "ID_HEADER",
    "MAX_BODY_BYTES",
    "SIGNATURE_HEADER",
    "TIMESTAMP_HEADER",
    "TOLERANCE_SECONDS",
    "Headers",
    "Secrets",
    "parse",
    "sign",
    "verify",
    "verify_signature",
]
