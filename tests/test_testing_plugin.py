"""The pytest plugin: its fixtures and markers as the page shows them, and that others do not notice it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "unit-testing.md").read_text()
# An earlier test of this process may have imported the plugin.
PLUGIN = (
    *("-p", "pulumi_hosting.testing.pytest_fixtures", "--strict-markers"),
    *("-W", "error", "-W", "ignore::pytest.PytestAssertRewriteWarning"),
)


def block(name: str) -> str:
    """The code of the page that begins with this file name."""
    blocks: list[str] = re.findall(r"```\w+\n(.*?)```", PAGE, re.DOTALL)
    return next(text for text in blocks if f"# {name}\n" in text)


def test_the_tests_of_the_page_pass(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_script=block("test_script.py"))
    pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=3)


@pytest.mark.slow
def test_the_playbook_of_the_page_makes_its_server(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ANSIBLE_COLLECTIONS_PATH", str(ROOT))
    pytester.path.joinpath("site.yml").write_text(block("site.yml"))
    pytester.makepyfile(test_playbook=block("test_playbook.py"))
    pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=1)


def test_each_test_has_an_account_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.hosting_data("account.yaml")
        @pytest.mark.hosting_emulator(now="2031-01-01T00:00:00Z", seed=3)
        @pytest.mark.parametrize("number", range(3))
        def test_alone(number, hosting_client, hosting_account, hosting_clock):
            assert (hosting_account.servers, str(hosting_clock.now)) == (["old"], "2031-01-01 00:00:00+00:00")
            hosting_client.servers.create(tariff_id=1, os="debian-12", name="web")
            assert hosting_account.servers == ["old", "web"]
            hosting_client.domains.register(name="shop.com", years=1)
            assert hosting_account.domains == ["shop.com"]

        @pytest.mark.hosting_fault({"panel_timeout": "failed"}, method="POST", path="/servers", times=1)
        @pytest.mark.hosting_emulator(provisioning_delay=60)
        def test_an_order_that_failed_has_ended(hosting_client, hosting_account, hosting_clock):
            hosting_client.servers.create(tariff_id=1, os="debian-12", name="web")
            assert [order["server_name"] for order in hosting_account.alive("orders")] == ["web"]
            hosting_clock.advance(hours=1)
            assert (hosting_account.alive("orders"), hosting_account.servers) == ([], [])

        @pytest.mark.hosting_fault({"status": 429, "retry_after": 50}, path="/balance", times=1)
        def test_a_pause_moves_the_clock(hosting_client, hosting_clock, hosting_account):
            before = hosting_clock.now
            hosting_client.balance.get()
            assert (hosting_clock.now - before).total_seconds() >= 50
            assert hosting_account.requests == ["GET /balance"] * 2
    """)
    pytester.path.joinpath("account.yaml").write_text("servers: [{name: old, id: 812}]")
    pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=5)


def test_mistakes_of_a_test_are_named(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.hosting_emulator(dialect="Live")
        def test_dialect(hosting_client):
            pass

        @pytest.mark.hosting_emulator(colour="red")
        def test_option(hosting_client):
            pass

        def test_kind(hosting_account):
            hosting_account.alive("server")
    """)
    result = pytester.runpytest_inprocess(*PLUGIN)
    result.assert_outcomes(errors=2, failed=1)
    result.stdout.fnmatch_lines_random(["*unknown option: colour; known: now, dialect, seed, *"])
    result.stdout.fnmatch_lines_random(["*dialect: must be spec or live, and is 'Live'"])
    result.stdout.fnmatch_lines_random(["*there is no kind 'server'; there are: *servers*"])


def test_a_fault_that_changed_no_answer_is_named(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.hosting_fault({"status": 503}, method="POST", path="^/server$")
        @pytest.mark.hosting_fault({"status": 503}, path="/balance", times=2)
        def test_order(hosting_client):
            hosting_client.balance.get()
            hosting_client.servers.create(tariff_id=1, os="debian-12", name="web")
    """)
    result = pytester.runpytest_inprocess(*PLUGIN)
    result.assert_outcomes(passed=1, errors=1)  # warnings are errors here
    found = [line for line in result.outlines if "changed no answer" in line and "Warning" in line]
    assert found[0].endswith(
        "hosting_fault of POST, ^/server$, times=1 changed no answer. Next: correct its method or path; "
        "the test sent GET /balance, POST /servers"
    )


def test_a_pause_of_the_async_client_moves_the_clock(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import asyncio

        async def order(emulator):
            async with emulator.async_client() as client:
                for number in range(25):  # more than a minute's expensive requests
                    await client.servers.create(tariff_id=1, os="debian-12", name=f"web-{number}")

        def test_it(hosting_emulator, hosting_account, hosting_clock):
            before = hosting_clock.now
            asyncio.run(order(hosting_emulator))
            assert len(hosting_account.servers) == 25
            assert (hosting_clock.now - before).total_seconds() >= 55
    """)
    pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=1)


@pytest.mark.slow
def test_a_process_reaches_the_emulator(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import os, subprocess, sys

        ORDER = "import pulumi_hosting as h; h.Client().servers.create(tariff_id=1, os='debian-12', name='a')"

        def test_order(hosting_emulator, hosting_account):
            environ = {**os.environ, **hosting_emulator.environment}
            subprocess.run([sys.executable, "-c", ORDER], env=environ, check=True)
            assert (hosting_account.servers, str(hosting_account.charged)) == (["a"], "5.00")
    """)
    pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=1)


def test_who_asks_for_no_fixture_loads_nothing() -> None:
    code = """if True:
        import sys, pulumi_hosting.testing.pytest_fixtures
        ours = ("pulumi_hosting", "httpx", "pydantic")
        print(sorted(name for name in sys.modules if name.startswith(ours)))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        done.stdout
        == "['pulumi_hosting', 'pulumi_hosting.testing', 'pulumi_hosting.testing.pytest_fixtures']\n"
    )
