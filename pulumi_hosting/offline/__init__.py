"""The offline engine: runs a Pulumi Python program without Pulumi's CLI, for trying and testing.

It knows Pulumi's protocol and state, and nothing of what is deployed with it. Real stacks are run by `pulumi`.
"""

from .errors import ConfigurationError, OfflineError, StackLocked, StackNotFound
from .stack import Result, Stack

__all__ = ["ConfigurationError", "OfflineError", "Result", "Stack", "StackLocked", "StackNotFound"]
