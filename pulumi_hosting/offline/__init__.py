"""The offline engine: runs a Pulumi Python program without Pulumi's CLI, for trying and testing.

It knows Pulumi's protocol and state, and nothing of what is deployed with it. Real stacks are run by `pulumi`.

Faithful in: what providers are asked, in which order and with which arguments; which operation is chosen and what it is called;
dependencies, unknowns, secrets, outputs; both orders of replacement; refresh and drift; failures, half-made resources and interruptions;
protect, targets, aliases and the other options of resources; exit codes, engine events, the state file and its secrets. All this is held
to recordings of Pulumi's own engine.

Not here: languages other than Python; backends other than files, secrets other than by passphrase; transforms, hooks, policies, plans,
stack references, components that live in plugins, parameterized packages, automatic names; downloading plugins;
hashes of assets. A program that asks for one of these is told so.
"""

import os

# gRPC's own log lines ("GOAWAY received") say nothing to a user, and it reads this when it is imported. The children inherit it.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from .errors import ConfigurationError, OfflineError, StackLocked, StackNotFound  # after the line above
from .operation import Result  # the same
from .stack import Stack  # the same

__all__ = ["ConfigurationError", "OfflineError", "Result", "Stack", "StackLocked", "StackNotFound"]
