"""Pulumi's passphrase secrets: AES-256-GCM under a key derived by PBKDF2-SHA256 with one million rounds.

The written forms are Pulumi's own, so either engine can decrypt a stack with the same passphrase.
"""

import base64
import hashlib
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ..errors import InvalidConfiguration

WEAK_SECRETS = "HOSTING_OFFLINE_WEAK_TEST_SECRETS"
"""For tests and rehearsals, whose passphrases are known: with this variable, new stacks get a key derived
with few rounds.

One million rounds take a quarter of a second in every process. The salt of such a stack starts with `weak:`
instead of `v1:`, so that it cannot be confused with a safe one; Pulumi refuses it.
"""
_ROUNDS = {"v1": 1_000_000, "weak": 1_000}
_PROOF = "pulumi"


@lru_cache(maxsize=64)
def _cipher(passphrase: str, salt: bytes, rounds: int) -> AESGCM:
    return AESGCM(hashlib.pbkdf2_hmac("sha256", passphrase.encode(), salt, rounds, 32))


class Crypter:
    """Encrypts and decrypts with the passphrase of a stack. The key is derived at first use.

    `state` is what Pulumi calls the encryption salt: `v1:<salt>:<a known word, encrypted>`.
    Raises `InvalidConfiguration` when the passphrase is wrong, before anything is encrypted with it.
    """

    def __init__(self, passphrase: str | None, state: str) -> None:
        self._passphrase = passphrase
        self.state = state
        self._cipher: AESGCM | None = None

    def __repr__(self) -> str:
        return "Crypter(…)"

    @classmethod
    def new(cls, passphrase: str | None, *, weak: bool = False) -> "Crypter":
        """With a new salt. `weak` is for tests: see `WEAK_SECRETS`."""
        version = "weak" if weak else "v1"
        salt = os.urandom(8)
        crypter = cls(passphrase, "")
        crypter._cipher = _cipher(_required(passphrase), salt, _ROUNDS[version])
        crypter.state = f"{version}:{base64.b64encode(salt).decode()}:{crypter.encrypt(_PROOF)}"
        return crypter

    def encrypt(self, text: str) -> str:
        nonce = os.urandom(12)
        encrypted = self._ready_cipher().encrypt(nonce, text.encode(), None)
        return f"v1:{base64.b64encode(nonce).decode()}:{base64.b64encode(encrypted).decode()}"

    def decrypt(self, text: str) -> str:
        return _decrypt(self._ready_cipher(), text)

    def _ready_cipher(self) -> AESGCM:
        if self._cipher is None:
            version, salt, proof = [*self.state.split(":", 2), "", ""][:3]
            try:
                rounds, raw = _ROUNDS[version], base64.b64decode(salt)
            except (KeyError, ValueError):
                raise InvalidConfiguration(
                    "the stack's encryption salt is not in the form v1:…; is its file damaged?"
                ) from None
            cipher = _cipher(_required(self._passphrase), raw, rounds)
            if _decrypt(cipher, proof) != _PROOF:
                raise InvalidConfiguration("incorrect passphrase")
            self._cipher = cipher
        return self._cipher


def _decrypt(cipher: AESGCM, text: str) -> str:
    try:
        version, nonce, encrypted = text.split(":")
        if version != "v1":
            raise ValueError(version)
        return cipher.decrypt(base64.b64decode(nonce), base64.b64decode(encrypted), None).decode()
    except (ValueError, InvalidTag) as error:
        raise InvalidConfiguration(
            "incorrect passphrase: a secret of this stack could not be decrypted"
        ) from error


def _required(passphrase: str | None) -> str:
    if passphrase is None:
        raise InvalidConfiguration(
            "passphrase must be set with PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE "
            "environment variables"
        )
    return passphrase


def passphrase_from(environ: Mapping[str, str]) -> str | None:
    """The passphrase as Pulumi finds it; None when neither variable is set. An empty passphrase is valid."""
    if "PULUMI_CONFIG_PASSPHRASE" in environ:
        return environ["PULUMI_CONFIG_PASSPHRASE"]
    if path := environ.get("PULUMI_CONFIG_PASSPHRASE_FILE"):
        try:
            return Path(path).read_text().rstrip("\r\n")
        except OSError as error:
            raise InvalidConfiguration(f"PULUMI_CONFIG_PASSPHRASE_FILE: {error.strerror}: {path}") from error
    return None
