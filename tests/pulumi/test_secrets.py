"""Every secret is searched for, in every spelling, in everything an engine prints or keeps: no hit."""

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pulumi_hosting.rehearsal.engines import PULUMI, Run, Stack
from tests.support.programs import Program

PASSWORD = "cAnary7&PasswordOfRoot"
REFUSED = "cAnary8&PasswordRefused"
TOO_SHORT = "cAn!9"
AUTH_CODE = "EPP/cAnary+Code=1"
TOO_LONG = "EPP-cAnaryTooLong" + "x" * 255
SIGNATURE = "4dabf18193072939515e22adb298388d"
"""The key by which Pulumi's state marks what it encrypted."""


def key_pair() -> tuple[str, str]:
    private = Ed25519PrivateKey.generate()
    text = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    ).decode()
    public = (
        private.public_key()
        .public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        .decode()
    )
    return public, text


def spellings(secret: str) -> list[bytes]:
    """As it is, in a URL, in JSON as Go writes it, in hexadecimal, and in base64 wherever in the encoded
    text it begins.
    """
    raw = secret.encode()
    # The digits at both edges depend on what stands beside the secret too.
    inner = [
        base64.b64encode(b"-" * shift + raw)[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6]
        for shift in (0, 1, 2)
    ]
    plain = [
        raw,
        quote(secret, safe="").encode(),
        json.dumps(secret)[1:-1].replace("&", "\\u0026").encode(),
        raw.hex().encode(),
    ]
    return [*plain, *inner, *(digits.translate(bytes.maketrans(b"+/", b"-_")) for digits in inner)]


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_a_secret_is_found_however_it_is_spelled(before: str, tmp_path: Path) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode, bytes.hex):
        text = encode(f"{before}{AUTH_CODE}tail".encode())
        (tmp_path / "file").write_bytes(text if isinstance(text, bytes) else text.encode())
        assert hits(AUTH_CODE, tmp_path) == [str(tmp_path / "file")]
    (tmp_path / "file").write_text(f"https://x.example/?code={quote(AUTH_CODE, safe='')}")
    assert hits(AUTH_CODE, tmp_path)


# At -v=9 Pulumi's own CLI prints every property of every resource and provider as it passes, decrypted: lines
# of the engine, which no provider can keep it from writing (the documentation says so). Everything else must be
# clean, and the API key, from the environment, is in no line.
ENGINE_TRACE = re.compile(r"\b(?:Unm|M)arshaling property for RPC\[|\"msg\":\"Transform: (?:name|props)=")


def hits(secret: str, folder: Path, *runs: Run, but_the_engine: bool = False) -> list[str]:
    lines = [
        line
        for run in runs
        for line in run.output.splitlines()
        if not (but_the_engine and ENGINE_TRACE.search(line))
    ]
    found = [line[:200] for line in lines if any(spelling in line.encode() for spelling in spellings(secret))]
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "__main__.py"]
    return found + [
        str(path) for path in files if any(spelling in path.read_bytes() for spelling in spellings(secret))
    ]


def sealed(stack: Stack) -> set[str]:
    """Where the state holds secrets, as ``name.field``; each must be encrypted, and the export show none."""
    found = set()
    for resource in stack.export()["deployment"]["resources"]:
        name = resource["urn"].rpartition("::")[2]
        for side in ("inputs", "outputs"):
            for field in ("password", "rootPassword", "authCode", "secret"):
                if (value := resource.get(side, {}).get(field)) is not None:
                    assert isinstance(value, dict), f"{name}.{field} is plain among its {side}"
                    assert SIGNATURE in value
                    assert "ciphertext" in value
                    found.add(f"{name}.{field}")
    return found


SEALED = {"given.password", "given.rootPassword", "made.rootPassword", "moved.authCode", "hook.secret"}
EXPORTS = """
pulumi.export("made", made.root_password)
pulumi.export("given", given.root_password)
pulumi.export("hook", hook.secret)
"""
LOUD = ("--verbose=9", "--logtostderr", "--diff")


def shop(public: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Every resource that has a secret."""
    return {
        "key": ("SshKey", {"public_key": public}),
        "given": ("Server", {"tariff_id": 1, "os": "debian-12", "password": PASSWORD, "notes": "x"}),
        "made": ("Server", {"tariff_id": 1, "os": "debian-12", "notes": "x"}),
        "moved": ("Domain", {"name": "example-2.com", "auth_code": AUTH_CODE}),
        "hook": ("WebhookSubscription", {"url": "https://hooks.example.com/x", "events": ["*"]}),
    }


@pytest.mark.daily
def test_nothing_shows_a_secret(program: Program, tmp_path: Path) -> None:
    public, private = key_pair()
    stack = program.stack
    stack.environ["HOSTING_LOG"] = "debug"
    runs: list[Run] = []

    def done(run: Run, exit_code: int = 0) -> Run:
        runs.append(run)
        assert run.exit_code == exit_code, run.output[-3000:]
        return run

    def declare(**changes: dict[str, Any]) -> None:
        declared = shop(public)
        program.declare(
            {name: (kind, {**given, **changes.get(name, {})}) for name, (kind, given) in declared.items()},
            EXPORTS,
        )

    # made, read, rotated: encrypted each time
    declare()
    done(stack.preview(*LOUD))
    done(stack.up(*LOUD))
    first = stack.outputs()
    assert first["given"] == PASSWORD
    assert len(first["made"]) >= 8
    assert sealed(stack) == SEALED
    program.control("PATCH", f"/servers/{program.resources()['given']['id']}", {"notes": "by hand"})
    assert done(stack.refresh(*LOUD)).changed == {"update": 1}
    assert sealed(stack) == SEALED
    declare(hook={"rotation": "1"})
    done(stack.up(*LOUD))
    second = stack.outputs()
    assert second["hook"] != first["hook"]
    assert (second["made"], second["given"]) == (first["made"], PASSWORD)
    assert sealed(stack) == SEALED

    # refused: by us, and by the service
    declare(given={"password": TOO_SHORT}, moved={"auth_code": TOO_LONG}, key={"public_key": private})
    done(stack.preview(*LOUD), 1)
    program.control(
        "POST",
        "/faults",
        {"method": "POST", "path": "^/servers$", "action": {"status": 400, "code": "invalid_request"}},
    )
    declare(given={"password": REFUSED, "rebuild": "replace"}, hook={"rotation": "1"})
    done(stack.up(*LOUD), 1)
    program.control("DELETE", "/faults")

    done(stack.run("stack", "export"))
    if program.form == "native":
        import_and_declare(program, tmp_path / "home", done)
        with stack.unchecked("the second stack imported what this one removes"):
            done(stack.destroy(*LOUD))
    else:
        done(stack.destroy(*LOUD))
    assert program.living == []
    assert any("] POST /servers: 201 (" in run.output for run in runs)
    assert hits(stack.environ["HOSTING_API_KEY"], tmp_path, *runs) == []
    inner = "".join(private.splitlines()[1:-1])
    for secret in (
        PASSWORD,
        REFUSED,
        TOO_SHORT,
        AUTH_CODE,
        TOO_LONG,
        first["made"],
        first["hook"],
        second["hook"],
        inner[:60],
        inner[-60:],
    ):
        assert hits(secret, tmp_path, *runs, but_the_engine=stack.engine.name == PULUMI) == []


def import_and_declare(program: Program, home: Path, done: Callable[[Run], Run]) -> None:
    """What is imported shows no secret; what is then declared is encrypted."""
    ids = {name: program.resources()[name]["id"] for name in ("given", "moved", "hook")}
    stack = program.stack.engine.stack(program.directory, home, program.stack.environ, name="second")
    for name, id in ids.items():
        kind = shop("")[name][0]
        asked = (
            "import",
            f"hosting:index:{kind}",
            name,
            id,
            "--yes",
            "--skip-preview",
            "--protect=false",
            "--generate-code=false",
        )
        done(stack.run(*asked))
    assert sealed(stack) == set()
    declared = {name: shop("")[name] for name in ids}
    declared["hook"][1]["rotation"] = "2"
    program.declare(declared, 'pulumi.export("hook", hook.secret)')
    done(stack.up(*LOUD))
    assert sealed(stack) >= {"given.password", "moved.authCode", "hook.secret"}
    done(stack.refresh(*LOUD))
    assert "hook.secret" in sealed(stack)
    done(stack.run("stack", "export"))


def test_a_key_in_the_configuration_is_encrypted_wherever_it_is_kept(
    program: Program, tmp_path: Path
) -> None:
    """As people do who have no environment to put it in."""
    api_key = program.stack.environ.pop("HOSTING_API_KEY")
    assert program.stack.run("config", "set", "--secret", "hosting:apiKey", api_key).exit_code == 0
    program.declare({"key": ("SshKey", {"public_key": key_pair()[0]})})
    runs = [
        program.stack.preview("--diff"),
        program.stack.up("--diff"),
        program.stack.refresh(),
        program.stack.run("stack", "export"),
    ]
    assert [run.exit_code for run in runs] == [0, 0, 0, 0], runs[1].output
    kept = [path.read_bytes() for path in program.directory.glob("Pulumi.*.yaml")]
    assert kept
    assert not any(api_key.encode() in text for text in kept)
    runs.append(program.stack.destroy())
    assert hits(api_key, tmp_path, *runs) == []
