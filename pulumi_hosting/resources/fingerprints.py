"""Fingerprints of SSH public keys, by which keys are the same whatever their id, name or comment."""

import base64
import hashlib


def fingerprint(public_key: str) -> str:
    """The ``SHA256:`` form of a key line ``type base64 comment``, as ``ssh-keygen -l`` prints it. Comment
    and spacing do not count.
    """
    digest = hashlib.sha256(base64.b64decode(public_key.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")
