"""Form two on every engine: programs whose resources are the plugin's."""

import json
import os
import signal
import subprocess
import textwrap
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.api.client import Client
from pulumi_hosting.provider.plugin_install import install
from pulumi_hosting.rehearsal.engines import PULUMI, Engine, Run
from tests.pulumi.conftest import PUBLIC_KEY, Program, make_program
from tests.pulumi.test_crash import started, wait_until

PASSWORD = "cAnary7PasswordOfRoot"
KEY = f'key = SshKey("me", public_key="{PUBLIC_KEY}")\n'
WEB = 'web = Server("web", tariff_id=1, os="debian-12", ssh_key_ids=[key.id], notes="one")\npulumi.export("ip", web.ip)\n'
SLOW = {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": "active"}}


class Plugged(Program):
    """A program of form two, the plugin installed where its engine looks."""

    def write(self, body: str, form: str = "pulumi_hosting.native") -> None:
        head = f"import pulumi\nimport pulumi_hosting.native as hosting\nfrom {form} import Server, SshKey\n\n"
        (self.directory / "__main__.py").write_text(head + textwrap.dedent(body), encoding="utf-8")

    def state(self, type: str = "hosting:index:Server") -> dict[str, Any]:
        """The one resource of that type, as it is stored."""
        resources = self.stack.export()["deployment"]["resources"]
        (found,) = [item for item in resources if item["type"] == type]
        resource: dict[str, Any] = found
        return resource


def done(run: Run) -> Run:
    assert run.exit_code == 0, run.output
    return run


@pytest.fixture
def plugged(engine: Engine, emulator: Any, tmp_path: Path) -> Plugged:
    home = tmp_path / "home"
    place = install(environ={"PULUMI_HOME": str(home / "pulumi"), "PATH": ""})
    # Pulumi's own CLI finds it below PULUMI_HOME, and would warn of one on PATH; the offline engine looks on PATH alone.
    search = {} if engine.name == PULUMI else {"PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}
    made = make_program(engine, emulator, tmp_path / "program", home, **search)
    return Plugged(made.directory, made.stack, made.emulator, made.control)


@pytest.mark.slow  # test_nouns climbs it with every noun
def test_server_and_key_live_their_whole_lives(plugged: Plugged, dialect: str) -> None:
    plugged.write(KEY + WEB)
    looked = done(plugged.stack.preview())
    assert looked.changed == {"create": 3}
    assert "charges 5.00 EUR now" in looked.output
    assert plugged.objects("servers") == []
    made = done(plugged.stack.up())
    assert made.changed == {"create": 3}
    assert "from $PATH" not in made.output
    (server,) = plugged.living
    assert plugged.stack.outputs()["ip"] == (server.get("primary_ip") or server.get("ip"))
    assert plugged.charges() == 1
    assert done(plugged.stack.up("--expect-no-changes")).changes == {"same": 3}

    plugged.write(KEY + WEB.replace('notes="one"', 'notes="two", name="www", auto_renew=False'))
    updated = done(plugged.stack.up())
    assert updated.changed == {"update": 1}
    (step,) = [step for step in updated.steps if step.op == "update"]
    assert {"autoRenew", "name", "notes"} == set(step.diffs)
    (server,) = plugged.living
    assert (server["name"], server["auto_renew"]) == ("www", False)
    done(plugged.stack.up("--expect-no-changes"))
    assert plugged.charges() == 1

    plugged.write(KEY + WEB.replace("debian-12", "ubuntu-24.04").replace('notes="one"', 'notes="two", name="www", auto_renew=False'))
    assert done(plugged.stack.preview()).changed == {"replace": 1}
    done(plugged.stack.up())
    (after,) = plugged.living
    assert after["id"] != server["id"]
    done(plugged.stack.up("--expect-no-changes"))

    done(plugged.stack.destroy())
    assert plugged.living == []
    assert plugged.objects("ssh_keys") == []


def test_drift_is_found_by_name_and_repaired_and_secrets_stay_secret(plugged: Plugged, tmp_path: Path) -> None:
    web = f'web = Server("web", tariff_id=1, os="debian-12", password="{PASSWORD}", notes="one")\npulumi.export("p", web.root_password)\n'
    plugged.write(web)
    done(plugged.stack.up())
    id = plugged.state()["id"]
    plugged.control("PATCH", f"/servers/{id}", {"notes": "changed in the cabinet"})
    found = plugged.stack.refresh("--preview-only", "--expect-no-changes")
    assert found.exit_code != 0
    assert [step.diffs for step in found.steps if step.op == "update"] == [("notes",)]
    refreshed = done(plugged.stack.refresh("--diff"))
    assert plugged.state()["inputs"]["notes"] == "changed in the cabinet"
    repaired = done(plugged.stack.up("--diff"))
    assert repaired.changed == {"update": 1}
    done(plugged.stack.refresh("--preview-only", "--expect-no-changes"))
    state = plugged.state()
    for kept in (state["inputs"]["password"], state["outputs"]["password"], state["outputs"]["rootPassword"]):
        assert isinstance(kept, dict)  # encrypted
    assert plugged.stack.outputs()["p"] == PASSWORD
    assert PASSWORD not in found.output + refreshed.output + repaired.output + json.dumps(plugged.stack.export())
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "__main__.py"]
    assert not any(PASSWORD.encode() in path.read_bytes() for path in written)


def test_what_vanished_is_made_again(plugged: Plugged) -> None:
    plugged.write(KEY + WEB)
    done(plugged.stack.up())
    plugged.control("DELETE", f"/servers/{plugged.state()['id']}")
    assert done(plugged.stack.refresh()).changes.get("delete") == 1
    assert done(plugged.stack.up()).changed == {"create": 1}
    assert len(plugged.living) == 1


def test_what_exists_is_imported_and_then_unchanged(plugged: Plugged) -> None:
    with Client(plugged.emulator.live_key, plugged.emulator.base_url) as client:
        key = client.ssh_keys.create(name="me", public_key=PUBLIC_KEY)
        client.servers.create(tariff_id=1, os="debian-12", name="web")
    (server,) = plugged.living
    plugged.stack.allow("there before, and imported one after the other", key.id, server["id"])
    plugged.write("")
    ids = {"SshKey": ("me", str(key.id)), "Server": ("web", str(server["id"]))}
    for type, (name, id) in ids.items():
        asked = ("import", f"hosting:index:{type}", name, id, "--yes", "--skip-preview", "--protect=false", "--generate-code=false")
        done(plugged.stack.run(*asked))
    plugged.write(f'SshKey("me", public_key="{PUBLIC_KEY}")\nServer("web", tariff_id=1, os="debian-12", notes="")')
    looked = done(plugged.stack.preview())
    assert not looked.changed, looked.output
    done(plugged.stack.up("--expect-no-changes"))
    assert plugged.charges() == 1
    done(plugged.stack.destroy())
    assert plugged.living == []


def test_an_import_of_what_is_not_there_fails_in_one_line(plugged: Plugged) -> None:
    plugged.write("")
    asked = ("import", "hosting:index:Server", "web", "4242", "--yes", "--skip-preview", "--generate-code=false")
    failed = plugged.stack.run(*asked)
    assert failed.exit_code != 0
    assert "there is no server with id 4242 on this account" in failed.output
    assert "Traceback" not in failed.output


# --- what takes its time


WAITING = """
hasty = pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create="1s"))
web = Server("web", tariff_id=1, os="debian-12", notes="one", opts=hasty)
Server("after", tariff_id=1, os="debian-12", opts=pulumi.ResourceOptions(depends_on=[web]))
"""


@pytest.mark.emulator(clock="manual", provisioning_delay=600)
def test_an_order_under_way_is_remembered_and_the_next_run_goes_on(plugged: Plugged) -> None:
    plugged.control("POST", "/faults", SLOW)
    plugged.write(WAITING)
    first = plugged.stack.up()
    assert first.exit_code != 0
    assert "is still provisioning" in first.output
    assert "Next: run again" in first.output
    order = plugged.state()
    assert order["id"].startswith("order:")
    assert order["initErrors"]
    assert plugged.charges() == 1

    plugged.control("POST", "/clock", {"advance": 601})
    again = done(plugged.stack.up())
    states = {item["urn"].rsplit("::", 1)[1]: item for item in plugged.stack.export()["deployment"]["resources"]}
    assert {server["name"]: str(server["id"]) for server in plugged.living} == {name: states[name]["id"] for name in ("web", "after")}
    assert not states["web"].get("initErrors"), again.output
    assert "waitTimeout" not in states["web"]["outputs"]
    assert plugged.charges() == 2
    done(plugged.stack.up("--expect-no-changes"))
    assert {server["name"]: server["notes"].split(" [")[0] for server in plugged.living}["web"] == "one"


@pytest.mark.emulator(clock="manual", provisioning_delay=600)
def test_a_run_that_still_finds_it_not_ready_keeps_the_order(plugged: Plugged) -> None:
    plugged.control("POST", "/faults", SLOW)
    plugged.write('Server("web", tariff_id=1, os="debian-12", wait_timeout=1)')
    assert plugged.stack.up().exit_code != 0
    order = plugged.state()["id"]
    again = plugged.stack.up()  # an update that succeeded here would keep the order's id for good
    assert again.exit_code != 0
    assert "is still provisioning" in again.output
    assert plugged.state()["id"] == order
    plugged.control("POST", "/clock", {"advance": 601})
    done(plugged.stack.up())
    assert plugged.state()["id"] == str(plugged.living[0]["id"])
    assert plugged.charges() == 1
    done(plugged.stack.destroy())
    assert plugged.living == []


@pytest.mark.emulator(clock="manual", provisioning_delay=600)
def test_a_cancelled_run_saves_what_it_waited_for(plugged: Plugged) -> None:
    plugged.control("POST", "/faults", SLOW)
    plugged.write('Server("web", tariff_id=1, os="debian-12")')
    running = started(plugged)
    waits(plugged, running)
    running.send_signal(signal.SIGINT)
    assert running.wait(60) != 0
    assert plugged.state()["id"].startswith("order:")
    plugged.control("POST", "/clock", {"advance": 601})
    done(plugged.stack.up())
    assert plugged.state()["id"] == str(plugged.living[0]["id"])
    assert plugged.charges() == 1


def waits(plugged: Plugged, running: subprocess.Popen[bytes]) -> None:
    """Until the order was taken and asked for."""
    wait_until(plugged, 1, running)
    deadline = time.monotonic() + 60
    while not any(row["path"].startswith("/orders") and row["seq"] > ordered(plugged) for row in plugged.control("GET", "/requests")):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def ordered(plugged: Plugged) -> int:
    return int(next(row["seq"] for row in plugged.control("GET", "/requests") if row["method"] == "POST" and row["path"] == "/servers"))


# --- accounts


def test_two_accounts_in_one_stack(plugged: Plugged) -> None:
    other = plugged.control("POST", "/accounts", {})
    plugged.write(f"""
        second = hosting.Provider("second", api_key="{other["live_key"]}", base_url="{plugged.emulator.base_url}")
        Server("here", tariff_id=1, os="debian-12")
        Server("there", tariff_id=1, os="debian-12", opts=pulumi.ResourceOptions(provider=second))
    """)
    done(plugged.stack.up())
    accounts = {server["name"]: server["account_id"] for server in plugged.living}
    assert accounts["there"] == other["account_id"] != accounts["here"]
    assert other["live_key"] not in json.dumps(plugged.stack.export())
    done(plugged.stack.up("--expect-no-changes"))
    done(plugged.stack.refresh("--preview-only", "--expect-no-changes"))
    done(plugged.stack.destroy())
    assert plugged.living == []


def test_one_limit_holds_for_all_providers_of_a_run(plugged: Plugged) -> None:
    """Both forms and a second provider: three processes of one engine, each of which alone would stay below the limit."""
    plugged.stack.environ["HOSTING_MAX_CHARGE"] = "12"
    plugged.write("""
        import pulumi_hosting as dynamic
        second = hosting.Provider("second")
        Server("s1", tariff_id=1, os="debian-12")
        Server("s2", tariff_id=1, os="debian-12", opts=pulumi.ResourceOptions(provider=second))
        dynamic.Server("s3", tariff_id=1, os="debian-12")
    """)
    refused = plugged.stack.up()
    assert refused.exit_code != 0
    assert "this run would charge 15.00 EUR, more than maxCharge 12" in refused.output
    charged = sum(Decimal(row["amount"]) for row in plugged.control.ledger() if row["type"] == "payment")
    assert charged == 5 * len(plugged.living) <= 12
    plugged.stack.environ["HOSTING_MAX_CHARGE"] = "15"
    done(plugged.stack.up())
    assert sorted(server["name"] for server in plugged.living) == ["s1", "s2", "s3"]
    done(plugged.stack.destroy())
    assert plugged.living == []


def test_a_rotated_key_is_used_at_once_and_replaces_nothing(plugged: Plugged) -> None:
    first = plugged.control("POST", "/keys", {"mode": "live"})
    second = plugged.control("POST", "/keys", {"mode": "live"})
    del plugged.stack.environ["HOSTING_API_KEY"], plugged.stack.environ["HOSTING_BASE_URL"]
    plugged.write('Server("web", tariff_id=1, os="debian-12", notes="one")')
    done(plugged.stack.run("config", "set", "hosting:baseUrl", plugged.emulator.base_url))
    done(plugged.stack.run("config", "set", "--secret", "hosting:apiKey", first["key"]))
    done(plugged.stack.up())
    id = plugged.state()["id"]
    plugged.control("DELETE", f"/keys/{first['id']}")
    done(plugged.stack.run("config", "set", "--secret", "hosting:apiKey", second["key"]))
    plugged.write('Server("web", tariff_id=1, os="debian-12", notes="two")')
    done(plugged.stack.up())
    assert plugged.state()["id"] == id
    exported = json.dumps(plugged.stack.export())
    assert first["key"] not in exported
    assert second["key"] not in exported


# --- from form one


def test_a_stack_of_form_one_is_taken_over_and_nothing_is_replaced(plugged: Plugged) -> None:
    body = KEY + WEB.replace('notes="one"', f'notes="one", password="{PASSWORD}"')
    plugged.write(body, form="pulumi_hosting")
    done(plugged.stack.up())
    (before,) = plugged.living
    plugged.write(body)
    looked = done(plugged.stack.preview())
    assert set(looked.changed) <= {"create", "delete"}, looked.output  # of providers alone
    assert not [step for step in looked.steps if step.name in ("web", "me") and step.op != "same"]
    done(plugged.stack.up())
    (after,) = plugged.living
    assert after["id"] == before["id"]
    state = plugged.state()
    assert state["id"] == str(before["id"])
    assert state["outputs"]["__identity"] == "pulumi:toys/dev/server/web"
    assert isinstance(state["outputs"]["rootPassword"], dict)
    assert plugged.charges() == 1
    done(plugged.stack.up("--expect-no-changes"))
    done(plugged.stack.refresh("--preview-only", "--expect-no-changes"))
    plugged.write(body.replace('"one"', '"two"'))
    assert done(plugged.stack.up()).changed == {"update": 1}
    done(plugged.stack.destroy())
    assert plugged.living == []


# --- questions


def test_a_lookup_by_id_reads_and_changes_nothing(plugged: Plugged) -> None:
    with Client(plugged.emulator.live_key, plugged.emulator.base_url) as client:
        client.servers.create(tariff_id=1, os="debian-12", name="theirs")
    (server,) = plugged.living
    plugged.stack.allow("only looked at", server["id"])
    plugged.write(f'theirs = Server.get("theirs", "{server["id"]}")\npulumi.export("os", theirs.os)\n')
    done(plugged.stack.up())
    assert plugged.stack.outputs()["os"] == "debian-12"
    done(plugged.stack.up("--expect-no-changes"))
    done(plugged.stack.destroy())
    assert len(plugged.living) == 1
    plugged.write('Server.get("nobodys", "4242")')
    failed = plugged.stack.preview()
    assert failed.exit_code != 0
    assert "there is no server with id 4242 on this account" in failed.output


def test_lookups_are_asked_by_programs(plugged: Plugged) -> None:
    plugged.write("""
        pulumi.export("scopes", len(hosting.get_me().scopes))
        pulumi.export("tariffs", hosting.get_tariffs_output().apply(lambda found: [tariff.id for tariff in found]))
    """)
    done(plugged.stack.up())
    outputs = plugged.stack.outputs()
    assert outputs["scopes"] > 5
    assert 1 in outputs["tariffs"]


def test_what_is_wrong_is_refused_in_the_preview_by_its_field(plugged: Plugged) -> None:
    plugged.write('Server("web", tariff_id=1, os="debian-12", password="cAnary")')
    refused = plugged.stack.preview("--diff")
    assert refused.exit_code != 0
    assert "password: must" in refused.output
    assert "cAnary" not in refused.output
    assert not any("Traceback" in error for error in refused.errors)
