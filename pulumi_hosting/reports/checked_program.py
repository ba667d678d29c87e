"""``python -m pulumi_hosting.reports.checked_program FILE``: the process in which a program is validated.

The order of ``reports.validate`` comes as JSON on standard input; what was found goes to FILE.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pulumi_hosting
from pulumi_hosting import native
from pulumi_hosting.provider.program_check import run
from pulumi_hosting.reports.stand_in_lookups import StandInLookups


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
