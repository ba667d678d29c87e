"""The offline engine: runs a Pulumi Python program without Pulumi's CLI, for trying and testing.

It implements Pulumi's protocol and state format and is independent of our resources. Use `pulumi` for real
stacks.

The same as in Pulumi, and tested against recordings of its engine: the calls of providers, their order and
arguments; the operations and their names; dependencies, unknowns, secrets and outputs; both orders of
replacement; refresh and drift; failures, resources that are not ready, interruptions; protect, targets,
aliases and the other resource options; transforms of resources; exit codes, engine events, the state file and
its secrets.

Not supported: languages other than Python; backends other than files; secrets other than by passphrase;
hooks, transforms of invokes, policies, plans, stack references, components in plugins, reads of providers,
parameterized packages, automatic names, downloads of plugins, hashes of assets. A program that uses one of
these fails with an error that names it.
"""

import os

# Hides log lines of gRPC ("GOAWAY received"). gRPC reads this when it is imported; child processes inherit
# it.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from .errors import InvalidConfiguration, OfflineError, StackLocked, StackNotFound  # after the line above
from .stack import OfflineStack, StackResult  # the same

__all__ = [
    "InvalidConfiguration",
    "OfflineError",
    "OfflineStack",
    "StackLocked",
    "StackNotFound",
    "StackResult",
]
