"""This machine as if it were another one: whatever is not connected to locally gets the real modules."""

from __future__ import annotations

from ansible.plugins.connection.local import Connection as Local

DOCUMENTATION = """
name: elsewhere
short_description: this machine, under another name
description: For the tests of the collection.
extends_documentation_fragment:
  - connection_pipelining
"""


class Connection(Local):  # type: ignore[misc]  # ansible-core ships no types
    transport = "elsewhere"
