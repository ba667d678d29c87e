"""Webhooks of the hosting company: verify single deliveries, or run a receiver. See the API document,
"Events".

- :mod:`pulumi_hosting.webhooks.signature`: verify, parse and sign deliveries in a web application of your
  own. Its names stand here.
- :mod:`pulumi_hosting.webhooks.receiver`: a complete receiver, with its HTTP server and a store that loses
  and repeats no event.
"""

from pulumi_hosting.webhooks.signature import *  # noqa: F403  # its __all__ is the one below
from pulumi_hosting.webhooks.signature import __all__ as __all__
