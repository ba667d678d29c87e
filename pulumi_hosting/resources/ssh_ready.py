"""Waits until a server answers on SSH, and asks for its host key.

The banner (RFC 4253, section 4.2) is read here. The key takes a key exchange, which ``ssh-keyscan`` of
OpenSSH does: whoever logs in over SSH has it, while a library would bring compiled cryptography to everybody.
"""

import ipaddress
import os
import re
import shutil
import socket
import subprocess

from pulumi_hosting.api.values import passes
from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.exactly_once import order_facts
from pulumi_hosting.resources.server_fields import ServerState, is_simulated
from pulumi_hosting.session.errors import ResourceError, WaitTimeout
from pulumi_hosting.session.request import Request

PORT = 22
_ATTEMPT = 10
"""Seconds that one connection may take."""
_EMULATED = ipaddress.ip_network("198.18.0.0/15")
"""Addresses of an emulator's servers; no machine has one (RFC 2544)."""
_KINDS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
_BANNERS = (b"SSH-2.0-", b"SSH-1.99-")
_KEY = re.compile(r"^\S+ (\S+) ([A-Za-z0-9+/]+={0,2})\s*$", re.MULTILINE)


def missing_program() -> str | None:
    """Why no host key could be asked for, with what to do; None if one can."""
    if shutil.which("ssh-keyscan"):
        return None
    return (
        "needs the program ssh-keyscan, which is not on PATH. Next: install OpenSSH's client (on Debian "
        "openssh-client), or leave ready out"
    )


def must_be_able(request: Request, ready: str | None, called: str) -> None:
    """Raise ``InvalidInput`` before anything is ordered or erased that could not be waited for."""
    if ready and not request.client.is_test_key and (why := missing_program()):
        raise InvalidInput({"ready": why}, called)


def host_key(request: Request, state: ServerState, former: str | None = None) -> str | None:
    """The host key of the server once it answers, as ``ssh-ed25519 AAAA…``; None of one that is only
    simulated. ``former``: the key of the system that is being replaced, which may answer for a while.

    Raises ``WaitTimeout`` after the request's waiting time, ``ResourceError`` if it cannot answer.
    """
    if request.client.is_test_key or is_simulated(state.id):
        return None
    if why := missing_program():
        raise ResourceError(f"server {state.id}: ready {why}")
    wait, ip = request.poller(), state.ip
    while True:
        if ip is None:
            server = order_facts.living_server(request, state.id)
            ip = None if server is None else server.ip
        if ip is not None and passes(ipaddress.ip_address, ip) and ipaddress.ip_address(ip) in _EMULATED:
            return None
        if state.power == "stopped" or state.status == "suspended":
            raise ResourceError(
                f"server {state.id} is {state.power or state.status} and does not answer on SSH. Next: leave "
                "ready out until it runs"
            )
        key, why = (None, "it has no address yet") if ip is None else _asked(request, ip)
        if key is not None and (key != former or wait.over):
            return key
        if key is not None:
            why = "the system of before its reinstallation answers"
        if wait.over:
            raise WaitTimeout(
                f"server {state.id} did not answer on SSH ({ip or 'no address'}, port {PORT}) within "
                f"{request.wait_timeout:.0f} s: {why}. Next: see that its firewall lets port {PORT} through, "
                "and run again: it is waited for, not bought again",
                id=state.id,
            )
        request.info(f"server {state.id}: waiting for SSH: {why}")
        wait.pause()


def _asked(request: Request, ip: str) -> tuple[str | None, str]:
    """The key that is there now, or why there is none."""
    try:
        with socket.create_connection((ip, PORT), _ATTEMPT) as peer, peer.makefile("rb") as lines:
            began = request.clock.monotonic()
            for _ in range(100):  # lines of text may come before the banner
                line = lines.readline(1024)
                if line.startswith(_BANNERS):
                    break
                if not line or request.seconds_since(began) > _ATTEMPT:
                    return None, "what listens there sends no SSH banner"
            else:
                return None, "what listens there sends no SSH banner"
    except OSError as error:
        return None, (error.strerror or str(error) or type(error).__name__).lower()
    return _scanned(ip), "ssh-keyscan shows no host key"


def _scanned(ip: str) -> str | None:
    """The host key, of the newest kind that the server has."""
    command = ["ssh-keyscan", "-T", str(_ATTEMPT), "-p", str(PORT), "-t", "ed25519,ecdsa,rsa", ip]
    # of the environment, which holds the API key, no more than it takes to start
    environ = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    try:
        said = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=6 * _ATTEMPT,
            check=False,
            env=environ,
        )
    except subprocess.TimeoutExpired:
        return None
    keys = dict(_KEY.findall(said.stdout))
    return next((f"{kind} {keys[kind]}" for kind in _KINDS if kind in keys), None)
