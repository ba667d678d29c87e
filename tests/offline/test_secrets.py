"""Passphrase secrets, in Pulumi's written form."""

from pathlib import Path

import pytest

from pulumi_hosting.offline import InvalidConfiguration
from pulumi_hosting.offline.storage.passphrase import WEAK_SECRETS, Crypter, passphrase_from
from pulumi_hosting.offline.storage.project import StackConfig, load_project

# Made by Pulumi's CLI 3.259 on 2026-11-21, passphrase "x", with `config set k v1 --secret`.
PULUMI_SALT = "v1:TU0nsxGP/i8=:v1:Xa4tFvV8f5I/qyaE:LL1VZYiwgwdn9tEeiYWKIzKoE9buVg=="
PULUMI_SECRET = "v1:M1zJkODOU/baOaPp:IWn0Wu8MH0bGTKw/T5NtgCNB"


def test_pulumi_s_secrets_are_decrypted() -> None:
    assert Crypter("x", PULUMI_SALT).decrypt(PULUMI_SECRET) == "v1"


def test_encrypt_and_decrypt() -> None:
    crypter = Crypter("x", PULUMI_SALT)
    encrypted = crypter.encrypt("hush ✓")
    assert "hush" not in encrypted
    assert encrypted != crypter.encrypt("hush ✓")
    assert Crypter("x", PULUMI_SALT).decrypt(encrypted) == "hush ✓"


def test_a_new_salt() -> None:
    crypter = Crypter.new("")
    assert crypter.state.startswith("v1:")
    assert Crypter("", crypter.state).decrypt(crypter.encrypt("a")) == "a"


def test_a_weak_salt_is_marked_and_only_made_on_request(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    project = load_project(tmp_path)
    salts = [
        StackConfig.load(project, stack)
        .ensure_crypter({"PULUMI_CONFIG_PASSPHRASE": "x"} | environ)
        .state.partition(":")[0]
        for stack, environ in (("dev", {}), ("test", {WEAK_SECRETS: "1"}))
    ]
    assert salts == ["v1", "weak"]
    weak = Crypter.new("x", weak=True)
    assert Crypter("x", weak.state).decrypt(weak.encrypt("a")) == "a"
    with pytest.raises(InvalidConfiguration, match="incorrect passphrase"):
        Crypter("x", weak.state.replace("weak:", "v1:")).decrypt(weak.encrypt("a"))


def test_a_wrong_passphrase_encrypts_nothing() -> None:
    with pytest.raises(InvalidConfiguration, match="incorrect passphrase"):
        Crypter("y", PULUMI_SALT).encrypt("a")


def test_no_passphrase() -> None:
    with pytest.raises(InvalidConfiguration, match="PULUMI_CONFIG_PASSPHRASE"):
        Crypter(None, PULUMI_SALT).encrypt("a")
    with pytest.raises(InvalidConfiguration, match="PULUMI_CONFIG_PASSPHRASE"):
        Crypter.new(None)


@pytest.mark.parametrize("text", ["", "v2:a:b", "v1:AAAA:AAAA", "v1:!"])
def test_a_damaged_secret(text: str) -> None:
    with pytest.raises(InvalidConfiguration, match="could not be decrypted"):
        Crypter("x", PULUMI_SALT).decrypt(text)


def test_a_damaged_salt() -> None:
    with pytest.raises(InvalidConfiguration, match="encryption salt"):
        Crypter("x", "v9").decrypt(PULUMI_SECRET)


def test_the_sources_of_the_passphrase(tmp_path: Path) -> None:
    file = tmp_path / "passphrase"
    file.write_text("from file\n")
    assert passphrase_from({}) is None
    assert passphrase_from({"PULUMI_CONFIG_PASSPHRASE": ""}) == ""
    assert passphrase_from({"PULUMI_CONFIG_PASSPHRASE_FILE": str(file)}) == "from file"
    with pytest.raises(InvalidConfiguration, match="No such file"):
        passphrase_from({"PULUMI_CONFIG_PASSPHRASE_FILE": str(tmp_path / "none")})


def test_a_crypter_shows_nothing() -> None:
    assert "cAnary" not in repr(Crypter.new("cAnary", weak=True))
