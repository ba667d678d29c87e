"""API key, root password and private key are searched for in everything an engine writes: no hit."""

import base64
import re
from pathlib import Path
from urllib.parse import quote

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pulumi_hosting.engines import Run
from tests.pulumi.conftest import Program

PASSWORD = "cAnary7PasswordOfRoot"


def key_pair() -> tuple[str, str]:
    private = Ed25519PrivateKey.generate()
    text = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()).decode()
    public = private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
    return public, text


def spellings(secret: str) -> list[bytes]:
    raw = secret.encode()
    return [raw, quote(secret, safe="").encode(), base64.b64encode(raw).rstrip(b"="), raw.hex().encode()]


# At -v=9 Pulumi's own CLI prints every property of every provider as it passes, decrypted: lines of the engine, which no provider can
# keep it from writing (the documentation says so). Everything else must be clean, and the API key, from the environment, is in no line.
ENGINE_TRACE = re.compile(r"\"msg\":\"(?:Unm|M)arshaling property for RPC\[|\b(?:Unm|M)arshaling property for RPC\[")


def hits(secret: str, folder: Path, *runs: Run, but_the_engine: bool = False) -> list[str]:
    lines = [line for run in runs for line in run.output.splitlines() if not (but_the_engine and ENGINE_TRACE.search(line))]
    found = [line[:200] for line in lines if any(spelling in line.encode() for spelling in spellings(secret))]
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "__main__.py"]
    return found + [str(path) for path in files if any(spelling in path.read_bytes() for spelling in spellings(secret))]


def test_nothing_shows_a_secret(program: Program, tmp_path: Path) -> None:
    public, private = key_pair()
    inner = "".join(private.splitlines()[1:-1])
    api_key = program.stack.environ["HOSTING_API_KEY"]
    declared = f"""
key = SshKey("me", public_key="{public}")
given = Server("given", tariff_id=1, os="debian-12", password="{PASSWORD}")
made = Server("made", tariff_id=1, os="debian-12", notes="x")
pulumi.export("made", made.root_password)
pulumi.export("given", given.root_password)
"""
    program.write(declared)
    loud = ("--verbose=9", "--logtostderr", "--diff")
    runs = [program.stack.preview(*loud), program.stack.up(*loud)]
    assert [run.exit_code for run in runs] == [0, 0], runs[-1].output[-3000:]
    outputs = program.stack.outputs()
    generated = str(outputs["made"])
    assert len(generated) >= 8
    assert outputs["given"] == PASSWORD
    runs.append(program.stack.refresh(*loud))
    program.write(declared.replace('notes="x"', 'notes="y", password="sh0rt!cAnary7 "'))
    runs.append(program.stack.up(*loud))
    assert runs[-1].exit_code == 1
    program.write(declared.replace(public, private.replace("\n", "\\n")))
    runs.append(program.stack.preview())
    assert runs[-1].exit_code == 1
    program.write(declared.replace(PASSWORD, PASSWORD + "2"))
    runs.append(program.stack.preview(*loud))
    runs.append(program.stack.run("stack", "export"))
    program.write(declared)
    runs.append(program.stack.destroy(*loud))
    assert runs[-1].exit_code == 0
    assert hits(api_key, tmp_path, *runs) == []
    for secret in (PASSWORD, generated, inner[:60], inner[-60:], "sh0rt!cAnary7"):
        assert hits(secret, tmp_path, *runs, but_the_engine=program.stack.engine.name == "pulumi") == []


def test_a_key_in_the_configuration_is_encrypted_wherever_it_is_kept(program: Program, tmp_path: Path) -> None:
    """As people do who have no environment to put it in."""
    api_key = program.stack.environ.pop("HOSTING_API_KEY")
    assert program.stack.run("config", "set", "--secret", "hosting:apiKey", api_key).exit_code == 0
    program.write('Server("web", tariff_id=1, os="debian-12")')
    runs = [program.stack.preview("--diff"), program.stack.up("--diff"), program.stack.refresh(), program.stack.run("stack", "export")]
    assert [run.exit_code for run in runs] == [0, 0, 0, 0], runs[1].output
    kept = [path.read_bytes() for path in program.directory.glob("Pulumi.*.yaml")]
    assert kept
    assert not any(api_key.encode() in text for text in kept)
    runs.append(program.stack.destroy())
    assert hits(api_key, tmp_path, *runs) == []
