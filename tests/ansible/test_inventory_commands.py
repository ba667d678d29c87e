"""The inventory ``hosting.cloud.servers`` under the real ansible-inventory, ansible-playbook and
ansible-doc."""

import json
import signal
import site
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.hosting.cloud.plugins.inventory import servers as plugin
from ansible_collections.hosting.cloud.plugins.module_utils.version import CORE
from tests.ansible.conftest import BIN, ROOT, Ansible
from tests.support.waiting import HANG_SECONDS, interruptible, wait_until

PLUGIN = "hosting.cloud.servers"


def write(ansible: Ansible, options: Mapping[str, Any] | str, name: str = "hosting.yml") -> Path:
    path = ansible.home / name
    path.write_text(options if isinstance(options, str) else yaml.safe_dump({"plugin": PLUGIN, **options}))
    return path


def run(
    ansible: Ansible,
    options: Mapping[str, Any] | str,
    *arguments: str,
    name: str = "hosting.yml",
    environ: Mapping[str, str] | None = None,
    command: tuple[str, ...] = (),
) -> "subprocess.CompletedProcess[str]":
    """List one inventory file. A source that cannot be read is an error."""
    return subprocess.run(
        [
            *(command or (*ansible.python, str(BIN / "ansible-inventory"))),
            "-i",
            str(write(ansible, options, name)),
            "--list",
            *arguments,
        ],
        env={**ansible.environ, "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1", **(environ or {})},
        cwd=ansible.home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def hosts(done: "subprocess.CompletedProcess[str]") -> list[str]:
    assert done.returncode == 0, done.stderr + done.stdout
    return list(json.loads(done.stdout)["_meta"]["hostvars"])


def refusal(done: "subprocess.CompletedProcess[str]") -> str:
    """What it printed, on one line."""
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    return " ".join((done.stdout + done.stderr).split())


def cached(ansible: Ansible) -> dict[str, Any]:
    return {
        "cache": True,
        "cache_plugin": "ansible.builtin.jsonfile",
        "cache_connection": str(ansible.home / "cache"),
    }


def order(ansible: Ansible, name: str) -> None:
    ansible.client.servers.create(tariff_id=1, os="debian-12", name=name)


def reads(ansible: Ansible) -> int:
    return len([1 for request in ansible.control("GET", "/requests?since=0") if request["method"] == "GET"])


def test_a_cached_inventory_sends_no_request_and_imports_no_http(ansible: Ansible) -> None:
    order(ansible, "web-1")

    def imported(done: "subprocess.CompletedProcess[str]") -> set[str]:
        lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
        return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}

    heavy = {"httpx", "httpcore", "pydantic", "pulumi_hosting", "pulumi"}
    first, before = run(ansible, cached(ansible), environ={"PYTHONPROFILEIMPORTTIME": "1"}), reads(ansible)
    second = run(ansible, cached(ansible), environ={"PYTHONPROFILEIMPORTTIME": "1"})
    assert before == reads(ansible) == 1
    assert imported(first) & heavy == heavy - {"pulumi"}
    assert imported(second) & heavy == set()
    assert hosts(first) == ["web-1"]
    assert json.loads(second.stdout) == json.loads(first.stdout)


def test_a_wait_for_the_rate_limit_is_announced_and_ends_at_ctrl_c(ansible: Ansible) -> None:
    for name in ("web-1", "web-2", "web-3"):
        order(ansible, name)
    key = ansible.control("POST", "/keys", {"mode": "live", "scopes": "full", "rate_per_minute": 1})["key"]
    path, printed, told = (ansible.home / name for name in ("hosting.yml", "printed", "told"))
    write(ansible, {"addresses": True})
    with printed.open("w") as output, told.open("w") as errors, interruptible():
        process = subprocess.Popen(
            [str(BIN / "ansible-inventory"), "-i", str(path), "--list"],
            env={**ansible.environ, "HOSTING_API_KEY": key},
            cwd=ansible.home,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
        )
        # Each of its four requests but the first waits for a window of its own.
        wait_until(lambda: "rate limit reached: waiting " in told.read_text(), process)
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_SECONDS) == 99  # Ansible's code for it
    assert printed.read_text() == ""
    assert "Traceback" not in told.read_text()
    requests = ansible.control("GET", "/requests?since=0")
    assert {request["status"] for request in requests if request["method"] == "GET"} == {200}


def test_a_refusal_is_one_line(ansible: Ansible) -> None:
    said = refusal(run(ansible, {"api_key": "vk_live_wrongwrongwrongwrongwrongwrong"}, "-vvvv"))
    assert "the API key is not valid. Next: check the option api_key" in said
    assert "vk_live_" not in said


@pytest.mark.slow
def test_a_playbook_runs_on_the_hosts(ansible: Ansible) -> None:
    """``meta: refresh_inventory`` reads the servers again, whatever the cache holds. Values of the API are
    not evaluated."""
    order(ansible, "web-1")
    (server,) = ansible.living
    notes = "{{ lookup('pipe', 'touch pwned') }}"
    ansible.control("PATCH", f"/servers/{server['id']}", {"notes": notes})
    inventory = write(
        ansible, {**cached(ansible), "connect_with": "none", "compose": {"ansible_connection": "'local'"}}
    )
    playbook = ansible.home / "play.yml"
    playbook.write_text(
        yaml.safe_dump(
            [
                {
                    "hosts": "hosting",
                    "gather_facts": False,
                    "tasks": [
                        {
                            "name": "before",
                            "ansible.builtin.debug": {"msg": "{{ hosting_id }} {{ ansible_host }}"},
                        },
                        {"ansible.builtin.meta": "refresh_inventory"},
                        {"name": "after", "ansible.builtin.debug": {"msg": "{{ hosting_notes }}"}},
                    ],
                }
            ]
        )
    )
    before = reads(ansible)
    played = ansible.finish(ansible.start_file(playbook, ("-i", str(inventory))))
    assert reads(ansible) - before == 2
    assert played["before"]["msg"] == f"{server['id']} web-1"
    assert played["after"]["msg"] == notes
    assert not (ansible.home / "pwned").exists()


@pytest.mark.slow
def test_a_vaulted_key(ansible: Ansible) -> None:
    order(ansible, "web-1")
    password = ansible.home / "vault"
    password.write_text("open sesame\n")
    vault = [str(BIN / "ansible-vault")]
    vaulted = subprocess.run(
        [*vault, "encrypt_string", "--vault-password-file", str(password), "--stdin-name", "api_key"],
        env=ansible.environ,
        cwd=ansible.home,
        input=ansible.emulator.live_key,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    text = f"plugin: {PLUGIN}\nbase_url: {ansible.emulator.base_url}\n{vaulted}"
    assert ansible.emulator.live_key not in text
    bare = {"HOSTING_API_KEY": "", "HOSTING_BASE_URL": ""}
    assert hosts(run(ansible, text, "--vault-password-file", str(password), environ=bare)) == ["web-1"]
    assert "no vault secrets found" in refusal(run(ansible, text, environ=bare))


@pytest.mark.slow
def test_file_names(ansible: Ansible) -> None:
    order(ansible, "web-1")
    assert hosts(run(ansible, {}, name="production.hosting.yml")) == ["web-1"]
    assert "could not be verified" in refusal(run(ansible, {}, name="servers.yml"))


@pytest.mark.slow
def test_without_and_with_an_old_core(ansible: Ansible, tmp_path: Path) -> None:
    """One line that says what to install, and into which interpreter. A cached inventory needs no core."""
    order(ansible, "web-1")
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    (packages,) = bare.glob("lib/python*/site-packages")
    (packages / "all.pth").write_text("\n".join(site.getsitepackages()))
    interpreter = str(bare / "bin" / "python")
    command = (interpreter, "-m", "ansible", "inventory")
    said = refusal(run(ansible, {}, command=command))
    assert f"pulumi-hosting >= {CORE}" in said
    assert interpreter in said
    assert hosts(run(ansible, cached(ansible))) == ["web-1"]
    assert hosts(run(ansible, cached(ansible), command=command)) == ["web-1"]

    (packages / "all.pth").write_text("\n".join([str(ROOT), *site.getsitepackages()]))
    old = packages / "pulumi_hosting-0.0.9.dist-info"
    old.mkdir()
    (old / "METADATA").write_text("Metadata-Version: 2.1\nName: pulumi-hosting\nVersion: 0.0.9\n")
    said = refusal(run(ansible, {}, command=command))
    assert "version 0.0.9 is installed" in said
    assert interpreter in said


@pytest.mark.slow
def test_ansible_doc_shows_every_option(ansible: Ansible) -> None:
    done = subprocess.run(
        [str(BIN / "ansible-doc"), "-t", "inventory", "--json", PLUGIN],
        env=ansible.environ, cwd=ansible.home, capture_output=True, text=True, check=True,
    )  # fmt: skip
    options = json.loads(done.stdout)[PLUGIN]["doc"]["options"]
    assert set(yaml.safe_load(plugin.DOCUMENTATION)["options"]) | {"keyed_groups", "cache", "strict"} <= set(
        options
    )
    assert all(
        "type" in option and option["description"]
        for name, option in options.items()
        if name != "cache_prefix"
    )
    assert done.stderr == ""
