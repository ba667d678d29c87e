"""Pulumi's option ``custom_timeouts`` on an engine: it bounds the waiting in either form."""

import pytest

from tests.provider.fake_engine import TOKENS
from tests.pulumi.test_native import SLOW, done
from tests.support.programs import Program

HASTY = """
hasty = pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create="1s", read="1s"))
Server("web", tariff_id=1, os="debian-12", opts=hasty)
"""


@pytest.mark.both_providers
@pytest.mark.emulator(clock="manual", provisioning_delay=600)
def test_an_order_is_waited_for_as_long_as_the_option_says(program: Program) -> None:
    program.control("POST", "/faults", SLOW)
    program.write(HASTY)
    with program.stack.unchecked("a dynamic resource's order is paid and in no state, as the failure says"):
        first = program.stack.up()
    assert first.exit_code != 0
    assert "is still provisioning after 1 s" in first.output
    assert program.charges == 1
    program.control("POST", "/clock", {"advance": 601})
    done(program.stack.up())
    state = program.state(TOKENS[program.form].format("Server"))
    assert [str(server["id"]) for server in program.living] == [state["id"]]
    assert "waitTimeout" not in state["outputs"]
    assert program.charges == 1
    done(program.stack.up("--expect-no-changes"))
    done(program.stack.destroy())
    assert program.living == []
