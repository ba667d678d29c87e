"""What a user declares: one file per noun, one engine over all of them (``base`` holds the contract, ``engine`` the reasoning)."""

from collections.abc import Mapping
from typing import Any

from pulumi_hosting.resources.base import Noun
from pulumi_hosting.resources.server import SERVER
from pulumi_hosting.resources.ssh_key import SSH_KEY

NOUNS: Mapping[str, Noun[Any, Any]] = {noun.kind: noun for noun in (SERVER, SSH_KEY)}
"""Every noun by its kind; both frontends enumerate this, so a new noun cannot be forgotten by either."""
