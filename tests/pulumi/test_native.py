"""The native provider on every engine."""

import json
import signal
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

from pulumi_hosting.client.client import Client
from pulumi_hosting.rehearsal.engines import Run
from tests.support.programs import PUBLIC_KEY, Program
from tests.support.waiting import HANG_SECONDS, wait_until

PASSWORD = "cAnary7PasswordOfRoot"
KEY = f'key = SshKey("me", public_key="{PUBLIC_KEY}")\n'
WEB = (
    'web = Server("web", tariff_id=1, os="debian-12", ssh_key_ids=[key.id], '
    'notes="one")\npulumi.export("ip", web.ip)\n'
)
SLOW = {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": "active"}}


def done(run: Run) -> Run:
    assert run.exit_code == 0, run.output
    return run


@pytest.mark.slow  # test_every_resource climbs it with every resource
def test_server_and_key_are_created_updated_and_deleted(native: Program, dialect: str) -> None:
    native.write(KEY + WEB)
    looked = done(native.stack.preview())
    assert looked.changed == {"create": 3}
    assert "will charge 5.00 EUR" in looked.output
    assert native.objects("servers") == []
    made = done(native.stack.up())
    assert made.changed == {"create": 3}
    assert "from $PATH" not in made.output
    (server,) = native.living
    assert native.stack.outputs()["ip"] == (server.get("primary_ip") or server.get("ip"))
    assert native.charges == 1
    assert done(native.stack.up("--expect-no-changes")).changes == {"same": 3}

    native.write(KEY + WEB.replace('notes="one"', 'notes="two", name="www", auto_renew=False'))
    updated = done(native.stack.up())
    assert updated.changed == {"update": 1}
    (step,) = [step for step in updated.steps if step.op == "update"]
    assert {"autoRenew", "name", "notes"} == set(step.diffs)
    (server,) = native.living
    assert (server["name"], server["auto_renew"]) == ("www", False)
    done(native.stack.up("--expect-no-changes"))
    assert native.charges == 1

    native.write(
        KEY
        + WEB.replace("debian-12", "ubuntu-24.04").replace(
            'notes="one"', 'notes="two", name="www", auto_renew=False'
        )
    )
    assert done(native.stack.preview()).changed == {"replace": 1}
    done(native.stack.up())
    (after,) = native.living
    assert after["id"] != server["id"]
    done(native.stack.up("--expect-no-changes"))

    done(native.stack.destroy())
    assert native.living == []
    assert native.objects("ssh_keys") == []


@pytest.mark.daily
def test_drift_is_found_by_name_and_repaired_and_secrets_stay_secret(native: Program, tmp_path: Path) -> None:
    web = (
        f'web = Server("web", tariff_id=1, os="debian-12", password="{PASSWORD}", '
        f'notes="one")\npulumi.export("p", web.root_password)\n'
    )
    native.write(web)
    done(native.stack.up())
    id = native.state()["id"]
    native.control("PATCH", f"/servers/{id}", {"notes": "changed in the control panel"})
    found = native.stack.refresh("--preview-only", "--expect-no-changes")
    assert found.exit_code != 0
    assert [step.diffs for step in found.steps if step.op == "update"] == [("notes",)]
    refreshed = done(native.stack.refresh("--diff"))
    assert native.state()["inputs"]["notes"] == "changed in the control panel"
    repaired = done(native.stack.up("--diff"))
    assert repaired.changed == {"update": 1}
    done(native.stack.refresh("--preview-only", "--expect-no-changes"))
    state = native.state()
    for kept in (state["inputs"]["password"], state["outputs"]["password"], state["outputs"]["rootPassword"]):
        assert isinstance(kept, dict)  # encrypted
    assert native.stack.outputs()["p"] == PASSWORD
    assert PASSWORD not in found.output + refreshed.output + repaired.output + json.dumps(
        native.stack.export()
    )
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "__main__.py"]
    assert not any(PASSWORD.encode() in path.read_bytes() for path in written)


def test_an_object_deleted_outside_is_made_again(native: Program) -> None:
    native.write(KEY + WEB)
    done(native.stack.up())
    native.control("DELETE", f"/servers/{native.state()['id']}")
    assert done(native.stack.refresh()).changes.get("delete") == 1
    assert done(native.stack.up()).changed == {"create": 1}
    assert len(native.living) == 1


def test_what_exists_is_imported_and_then_unchanged(native: Program) -> None:
    with Client(native.emulator.live_key, native.emulator.base_url) as client:
        key = client.ssh_keys.create(name="me", public_key=PUBLIC_KEY)
        client.servers.create(tariff_id=1, os="debian-12", name="web")
    (server,) = native.living
    native.stack.allow("there before, and imported one after the other", key.id, server["id"])
    native.write("")
    ids = {"SshKey": ("me", str(key.id)), "Server": ("web", str(server["id"]))}
    for type, (name, id) in ids.items():
        asked = (
            "import",
            f"hosting:index:{type}",
            name,
            id,
            "--yes",
            "--skip-preview",
            "--protect=false",
            "--generate-code=false",
        )
        done(native.stack.run(*asked))
    native.write(
        f'SshKey("me", public_key="{PUBLIC_KEY}")\nServer("web", tariff_id=1, os="debian-12", notes="")'
    )
    looked = done(native.stack.preview())
    assert not looked.changed, looked.output
    done(native.stack.up("--expect-no-changes"))
    assert native.charges == 1
    done(native.stack.destroy())
    assert native.living == []


def test_an_import_of_what_is_not_there_fails_in_one_line(native: Program) -> None:
    native.write("")
    asked = (
        "import",
        "hosting:index:Server",
        "web",
        "4242",
        "--yes",
        "--skip-preview",
        "--generate-code=false",
    )
    failed = native.stack.run(*asked)
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
def test_an_order_under_way_is_remembered_and_the_next_run_goes_on(native: Program) -> None:
    native.control("POST", "/faults", SLOW)
    native.write(WAITING)
    first = native.stack.up()
    assert first.exit_code != 0
    assert "is still provisioning" in first.output
    assert "Next: run again" in first.output
    order = native.state()
    assert order["id"].startswith("order:")
    assert order["initErrors"]
    assert native.charges == 1

    native.control("POST", "/clock", {"advance": 601})
    again = done(native.stack.up())
    states = {
        item["urn"].rsplit("::", 1)[1]: item for item in native.stack.export()["deployment"]["resources"]
    }
    assert {server["name"]: str(server["id"]) for server in native.living} == {
        name: states[name]["id"] for name in ("web", "after")
    }
    assert not states["web"].get("initErrors"), again.output
    assert "waitTimeout" not in states["web"]["outputs"]
    assert native.charges == 2
    done(native.stack.up("--expect-no-changes"))
    assert {server["name"]: server["notes"].split(" [")[0] for server in native.living}["web"] == "one"


@pytest.mark.emulator(clock="manual", provisioning_delay=600)
def test_a_run_that_still_finds_it_not_ready_keeps_the_order(native: Program) -> None:
    native.control("POST", "/faults", SLOW)
    native.write('Server("web", tariff_id=1, os="debian-12", wait_timeout=1)')
    assert native.stack.up().exit_code != 0
    order = native.state()["id"]
    again = native.stack.up()  # an update that succeeded here would keep the order's id for good
    assert again.exit_code != 0
    assert "is still provisioning" in again.output
    assert native.state()["id"] == order
    native.control("POST", "/clock", {"advance": 601})
    done(native.stack.up())
    assert native.state()["id"] == str(native.living[0]["id"])
    assert native.charges == 1
    done(native.stack.destroy())
    assert native.living == []


@pytest.mark.emulator(clock="manual", provisioning_delay=600)
def test_a_cancelled_run_saves_what_it_waited_for(native: Program) -> None:
    native.control("POST", "/faults", SLOW)
    native.write('Server("web", tariff_id=1, os="debian-12")')
    running = native.start_cold()
    waits(native, running)
    running.send_signal(signal.SIGINT)
    assert running.wait(HANG_SECONDS) != 0
    assert native.state()["id"].startswith("order:")
    native.control("POST", "/clock", {"advance": 601})
    done(native.stack.up())
    assert native.state()["id"] == str(native.living[0]["id"])
    assert native.charges == 1


def waits(native: Program, running: subprocess.Popen[bytes]) -> None:
    """Until the order was taken and asked for."""
    wait_until(lambda: native.charges >= 1, running)
    wait_until(
        lambda: any(
            row["path"].startswith("/orders") and row["seq"] > ordered(native)
            for row in native.control("GET", "/requests")
        ),
        running,
    )


def ordered(native: Program) -> int:
    return int(
        next(
            row["seq"]
            for row in native.control("GET", "/requests")
            if row["method"] == "POST" and row["path"] == "/servers"
        )
    )


# --- accounts


def test_two_accounts_in_one_stack(native: Program) -> None:
    other = native.control("POST", "/accounts", {})
    native.write(f"""
        second = hosting.Provider("second", api_key="{other["live_key"]}", base_url="{native.emulator.base_url}")
        Server("here", tariff_id=1, os="debian-12")
        Server("there", tariff_id=1, os="debian-12", opts=pulumi.ResourceOptions(provider=second))
    """)
    done(native.stack.up())
    accounts = {server["name"]: server["account_id"] for server in native.living}
    assert accounts["there"] == other["account_id"] != accounts["here"]
    assert other["live_key"] not in json.dumps(native.stack.export())
    done(native.stack.up("--expect-no-changes"))
    done(native.stack.refresh("--preview-only", "--expect-no-changes"))
    done(native.stack.destroy())
    assert native.living == []


def test_one_limit_holds_for_all_providers_of_a_run(native: Program) -> None:
    """Dynamic, native and a second provider: three processes of one engine, each of which alone would
    stay below the limit.
    """
    native.stack.environ["HOSTING_MAX_CHARGE"] = "12"
    native.write("""
        import pulumi_hosting as dynamic
        second = hosting.Provider("second")
        Server("s1", tariff_id=1, os="debian-12")
        Server("s2", tariff_id=1, os="debian-12", opts=pulumi.ResourceOptions(provider=second))
        dynamic.Server("s3", tariff_id=1, os="debian-12")
    """)
    refused = native.stack.up()
    assert refused.exit_code != 0
    assert "this run would charge 15.00 EUR, more than maxCharge 12" in refused.output
    charged = sum(Decimal(row["amount"]) for row in native.ledger() if row["type"] == "payment")
    assert charged == 5 * len(native.living) <= 12
    native.stack.environ["HOSTING_MAX_CHARGE"] = "15"
    done(native.stack.up())
    assert sorted(server["name"] for server in native.living) == ["s1", "s2", "s3"]
    done(native.stack.destroy())
    assert native.living == []


def test_a_rotated_key_is_used_at_once_and_replaces_nothing(native: Program) -> None:
    first = native.control("POST", "/keys", {"mode": "live"})
    second = native.control("POST", "/keys", {"mode": "live"})
    del native.stack.environ["HOSTING_API_KEY"], native.stack.environ["HOSTING_BASE_URL"]
    native.write('Server("web", tariff_id=1, os="debian-12", notes="one")')
    done(native.stack.run("config", "set", "hosting:baseUrl", native.emulator.base_url))
    done(native.stack.run("config", "set", "--secret", "hosting:apiKey", first["key"]))
    done(native.stack.up())
    id = native.state()["id"]
    native.control("DELETE", f"/keys/{first['id']}")
    done(native.stack.run("config", "set", "--secret", "hosting:apiKey", second["key"]))
    native.write('Server("web", tariff_id=1, os="debian-12", notes="two")')
    done(native.stack.up())
    assert native.state()["id"] == id
    exported = json.dumps(native.stack.export())
    assert first["key"] not in exported
    assert second["key"] not in exported


# --- from dynamic resources


def test_a_stack_of_dynamic_resources_is_taken_over_and_nothing_is_replaced(native: Program) -> None:
    body = KEY + WEB.replace('notes="one"', f'notes="one", password="{PASSWORD}"')
    native.write(body, form="dynamic")
    done(native.stack.up())
    (before,) = native.living
    native.write(body)
    looked = done(native.stack.preview())
    assert set(looked.changed) <= {"create", "delete"}, looked.output  # of providers alone
    assert not [step for step in looked.steps if step.name in ("web", "me") and step.op != "same"]
    done(native.stack.up())
    (after,) = native.living
    assert after["id"] == before["id"]
    state = native.state()
    assert state["id"] == str(before["id"])
    assert state["outputs"]["__identity"] == "pulumi:toys/dev/server/web"
    assert isinstance(state["outputs"]["rootPassword"], dict)
    assert native.charges == 1
    done(native.stack.up("--expect-no-changes"))
    done(native.stack.refresh("--preview-only", "--expect-no-changes"))
    native.write(body.replace('"one"', '"two"'))
    assert done(native.stack.up()).changed == {"update": 1}
    done(native.stack.destroy())
    assert native.living == []


# --- questions


def test_a_lookup_by_id_reads_and_changes_nothing(native: Program) -> None:
    with Client(native.emulator.live_key, native.emulator.base_url) as client:
        client.servers.create(tariff_id=1, os="debian-12", name="theirs")
    (server,) = native.living
    native.stack.allow("only looked at", server["id"])
    native.write(f'theirs = Server.get("theirs", "{server["id"]}")\npulumi.export("os", theirs.os)\n')
    done(native.stack.up())
    assert native.stack.outputs()["os"] == "debian-12"
    done(native.stack.up("--expect-no-changes"))
    done(native.stack.destroy())
    assert len(native.living) == 1
    native.write('Server.get("missing", "4242")')
    failed = native.stack.preview()
    assert failed.exit_code != 0
    assert "there is no server with id 4242 on this account" in failed.output


def test_lookups_are_asked_by_programs(native: Program) -> None:
    native.write("""
        pulumi.export("scopes", len(hosting.get_me().scopes))
        pulumi.export("tariffs", hosting.get_tariffs_output().apply(lambda found: [tariff.id for tariff in found]))
    """)
    done(native.stack.up())
    outputs = native.stack.outputs()
    assert outputs["scopes"] > 5
    assert 1 in outputs["tariffs"]


def test_what_is_wrong_is_refused_in_the_preview_by_its_field(native: Program) -> None:
    native.write('Server("web", tariff_id=1, os="debian-12", password="cAnary")')
    refused = native.stack.preview("--diff")
    assert refused.exit_code != 0
    assert "password: must" in refused.output
    assert "cAnary" not in refused.output
    assert not any("Traceback" in error for error in refused.errors)
