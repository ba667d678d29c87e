"""``python -m pulumi_hosting.reports.checked_program FILE``: the process in which a program is validated.

The order of ``reports.validate`` comes as JSON on standard input; what was found goes to FILE. Lookups are
answered as an emulator's fresh account answers them: the catalog is whole.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pulumi_hosting
from pulumi_hosting import native
from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.in_process_transport import Transport
from pulumi_hosting.provider.program_check import run


def main() -> None:
    answer = Path(sys.argv[1])
    core, address = Core(clock=Clock()), "http://127.0.0.1:1/v1"  # nothing listens there
    core.announce(address, address, 0)
    client = Client(core.ready_line["live_key"], address, transport=Transport(core))
    findings = run(json.load(sys.stdin), client, (pulumi_hosting, native))
    found = {
        "resources": findings.resources,
        "mistakes": [asdict(one) for one in findings.mistakes()],
        "not_run": findings.not_run,
    }
    answer.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
