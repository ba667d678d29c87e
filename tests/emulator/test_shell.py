"""``emulator --export`` and ``--log``: an emulator for a shell, and its requests as they come."""

import json
import socket
import subprocess

import httpx
import pytest

from pulumi_hosting.rehearsal.warm_python import PYTHON
from tests.emulator.support import OVER_HTTP
from tests.emulator.test_process import KEY, SERVER, start
from tests.support.waiting import HANG_SECONDS

pytestmark = pytest.mark.usefixtures("warm")


def test_export_with_a_port_in_use_is_one_line_and_exit_code_2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = start("--export", "--port", str(port))
        out, err = done.communicate(timeout=HANG_SECONDS)
    assert (done.returncode, out, len(err.splitlines())) == (2, "", 1)
    assert f"port {port}" in err


def test_log_shows_each_request_without_its_secrets() -> None:
    with start("--log") as process:
        assert process.stdout is not None
        line = json.loads(process.stdout.readline())
        with httpx.Client(
            base_url=line["base_url"], headers={"Authorization": f"Bearer {line['live_key']}"}, **OVER_HTTP
        ) as http:
            for _ in range(2):
                http.post("/servers", json={**SERVER, "password": "cAnary7word"}, headers=KEY)
            http.get("/servers/7")
            http.get("/servers", params={"password": "cAnary7word", "x": line["test_key"]})
            control_url = line["control_url"]
            httpx.post(f"{control_url}/faults", json={"action": {"drop": "before"}}, **OVER_HTTP)
            with pytest.raises(httpx.TransportError):
                http.get("/me")
        process.terminate()
        _, err = process.communicate(timeout=HANG_SECONDS)
    shown = [row.partition(" ")[2] for row in err.splitlines()]
    assert shown == [
        "POST /v1/servers 201 (key 501, expensive)",
        "POST /v1/servers 201 (key 501, expensive, replayed)",
        "GET /v1/servers/7 404 not_found (key 501, normal)",
        "GET /v1/servers?password=**********&x=********** 400 validation_error (key 501, normal)",
        "GET /v1/me no answer",
    ]
    assert "vk_" not in err
    assert "cAnary7word" not in err


def test_export_leaves_an_emulator_in_the_background() -> None:
    """As a person uses it: a shell evaluates what is printed, and later ends the emulator by its process."""
    script = f"""
        eval "$({PYTHON} -m pulumi_hosting.emulator --export --seed 3)" || exit 3
        {PYTHON} -c '
import os, httpx
answer = httpx.get(os.environ["HOSTING_BASE_URL"] + "/me", trust_env=False,
                   headers={{"Authorization": "Bearer " + os.environ["HOSTING_API_KEY"]}})
print(answer.status_code, os.environ["HOSTING_EMULATOR_CONTROL_URL"].endswith("/_control"))'
        kill "$HOSTING_EMULATOR_PID"
        echo ended
    """
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )
    assert done.stdout.splitlines() == ["200 True", "ended"], done
    assert "Next: kill $HOSTING_EMULATOR_PID to end it" in done.stderr
