"""``python -m pulumi_hosting.reports.checked_program FILE``: the process in which a program is validated.

The order of ``reports.validate`` comes as JSON on standard input; what was found goes to FILE.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import pulumi_hosting
from pulumi_hosting import native
from pulumi_hosting.api.casing import camel
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import HostingError, InvalidInput
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.in_process_transport import Transport
from pulumi_hosting.provider import lookup_tokens
from pulumi_hosting.provider.program_check import run
from pulumi_hosting.rehearsal.facts import JsonObject
from pulumi_hosting.schema.fields import Type, fields
from pulumi_hosting.schema.lookups import LOOKUPS

_PLAIN: JsonObject = {"string": "1", "integer": 1, "number": 1.0, "boolean": True, "any": None}


class StandInLookups:
    """Called with a lookup's token and its arguments, both as on Pulumi's wire."""

    @cached_property
    def _client(self) -> Client:
        core = Core(clock=Clock())
        address = "http://127.0.0.1:1/v1"  # nothing listens there
        core.announce(address, address, 0)
        return Client(core.ready_line["live_key"], address, transport=Transport(core))

    def __call__(self, token: str, args: JsonObject) -> dict[str, object]:
        try:
            return lookup_tokens.call(self._client, token, args)
        except HostingError:
            lookup = LOOKUPS[token.rpartition(":")[2]]
            value = _stand_in(lookup.value)
            return value if lookup.single is None else {camel(lookup.single): value}

    def wrong(self, token: str, args: JsonObject) -> Mapping[str, str]:
        """Argument → what is wrong with its value."""
        try:
            lookup_tokens.call(self._client, token, args)
        except InvalidInput as error:
            return error.fields
        except HostingError:
            pass
        return {}


def _stand_in(type: Type) -> Any:
    """Some value of a type; a text that reads as a number too, since amounts are texts."""
    if type.model is not None:
        return {field.wire: _stand_in(field.type) for field in fields(type.model)}
    if type.of is not None:
        return {} if type.kind == "map" else [_stand_in(type.of)]
    return _PLAIN[type.kind]


def main() -> None:
    answer = Path(sys.argv[1])
    findings = run(json.load(sys.stdin), StandInLookups(), (pulumi_hosting, native))
    found = {
        "resources": findings.resources,
        "mistakes": [asdict(one) for one in findings.mistakes()],
        "not_run": findings.not_run,
    }
    answer.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
