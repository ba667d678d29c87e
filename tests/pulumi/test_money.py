"""What a run says of its money, and what it does not do for lack of it: by the ledger, on an engine."""

import re
from typing import Any

import pytest

from tests.support.programs import Program

SERVER: dict[str, Any] = {"tariff_id": 1, "os": "debian-12"}
LAST = re.compile(r"charged ([0-9.]+) EUR, credited ([0-9.]+), balance ([0-9.]+)$", re.MULTILINE)


def balance(program: Program) -> str:
    return str(program.objects("accounts")[0]["balance"])


@pytest.mark.both_providers
def test_the_last_line_says_what_was_charged_and_credited(program: Program) -> None:
    servers = {f"web{number}": ("Server", SERVER) for number in range(3)}
    program.declare(servers)
    assert not LAST.search(program.run(program.stack.preview()).output)
    made = program.run(program.stack.up())
    assert LAST.findall(made.output)[-1] == ("15.00", "0.00", balance(program))
    assert len(re.findall(r"charged 5\.00 EUR \(VDS-1, 1 month\), invoice [0-9]+$", made.output, re.M)) == 3
    assert program.moved("payment") == 15
    assert not LAST.search(program.run(program.stack.up(), {}).output)
    program.declare({"web0": servers["web0"]})
    changed = program.run(program.stack.up())
    assert LAST.findall(changed.output)[-1] == ("0.00", str(-program.moved("refund")), balance(program))
