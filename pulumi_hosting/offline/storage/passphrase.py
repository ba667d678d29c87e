"""Pulumi's passphrase secrets: AES-256-GCM under a key derived by PBKDF2-SHA256 with one million rounds.

The written forms are Pulumi's own, so a stack can be opened by either engine with the same passphrase.
"""

import base64
import hashlib
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ..errors import ConfigurationError

_ROUNDS = 1_000_000
_PROOF = "pulumi"


@lru_cache(maxsize=64)
def _derive_key(passphrase: str, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", passphrase.encode(), salt, _ROUNDS, 32)


class Crypter:
    """Encrypts and decrypts under the passphrase of a stack. The key is derived at first use, which takes a good part of a second.

    `state` is what Pulumi calls the encryption salt: `v1:<salt>:<a known word, encrypted>`.
    Raises `ConfigurationError` when the passphrase does not fit, before anything is encrypted with it.
    """

    def __init__(self, passphrase: str | None, state: str) -> None:
        self._passphrase = passphrase
        self.state = state
        self._cipher: AESGCM | None = None

    def __repr__(self) -> str:
        return "Crypter(…)"

    @classmethod
    def new(cls, passphrase: str | None) -> "Crypter":
        salt = os.urandom(8)
        crypter = cls(passphrase, "")
        crypter._cipher = AESGCM(_derive_key(_required(passphrase), salt))
        crypter.state = f"v1:{base64.b64encode(salt).decode()}:{crypter.encrypt(_PROOF)}"
        return crypter

    def encrypt(self, text: str) -> str:
        nonce = os.urandom(12)
        sealed = self._open().encrypt(nonce, text.encode(), None)
        return f"v1:{base64.b64encode(nonce).decode()}:{base64.b64encode(sealed).decode()}"

    def decrypt(self, text: str) -> str:
        return _decrypt(self._open(), text)

    def _open(self) -> AESGCM:
        if self._cipher is None:
            version, salt, proof = [*self.state.split(":", 2), "", ""][:3]
            if version != "v1":
                raise ConfigurationError("the stack's encryption salt is not in the form v1:…; is its file damaged?")
            try:
                raw = base64.b64decode(salt)
            except ValueError:
                raise ConfigurationError("the stack's encryption salt is not in the form v1:…; is its file damaged?") from None
            cipher = AESGCM(_derive_key(_required(self._passphrase), raw))
            if _decrypt(cipher, proof) != _PROOF:
                raise ConfigurationError("incorrect passphrase")
            self._cipher = cipher
        return self._cipher


def _decrypt(cipher: AESGCM, text: str) -> str:
    try:
        version, nonce, sealed = text.split(":")
        if version != "v1":
            raise ValueError(version)
        return cipher.decrypt(base64.b64decode(nonce), base64.b64decode(sealed), None).decode()
    except (ValueError, InvalidTag) as error:
        raise ConfigurationError("incorrect passphrase: a secret of this stack could not be decrypted") from error


def _required(passphrase: str | None) -> str:
    if passphrase is None:
        raise ConfigurationError(
            "passphrase must be set with PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE environment variables"
        )
    return passphrase


def passphrase_from(environ: Mapping[str, str]) -> str | None:
    """The passphrase as Pulumi finds it; None when neither variable is set. An empty passphrase is one."""
    if "PULUMI_CONFIG_PASSPHRASE" in environ:
        return environ["PULUMI_CONFIG_PASSPHRASE"]
    if path := environ.get("PULUMI_CONFIG_PASSPHRASE_FILE"):
        try:
            return Path(path).read_text().rstrip("\r\n")
        except OSError as error:
            raise ConfigurationError(f"PULUMI_CONFIG_PASSPHRASE_FILE: {error.strerror}: {path}") from error
    return None
