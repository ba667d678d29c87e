"""Fingerprints of SSH public keys, by which keys are the same whatever their id, name or comment."""

from collections.abc import Iterable

from pulumi_hosting.api import models as m
from pulumi_hosting.api.values import fingerprint
from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.exactly_once import catalog_reads
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text


def known_keys(request: Request, wanted: Iterable[str]) -> dict[str, m.SshKey]:
    """The keys of the account by id; a list from before one of the wanted keys was added is not believed."""
    known: dict[str, m.SshKey] = {}
    for fresh in (False, True):
        if fresh:
            request.reads.forget("ssh_keys")
        known = {str(key.id): key for key in catalog_reads.ssh_keys(request)}
        if known.keys() >= set(wanted):
            break
    return known


def installed_keys(request: Request, ids: list[str] | None) -> list[m.SshKey]:
    """The keys with these ids; none if there are no ids, or not all of them can be told."""
    if not ids:
        return []
    try:
        known = known_keys(request, ids)
        return [known[id] for id in ids]
    except (HostingError, KeyError):
        return []


def added(keys: list[m.SshKey]) -> dict[str, str | None]:
    """Id → when the key was added to the account."""
    return {str(key.id): as_text(key.created_at) for key in keys}


def fingerprints(keys: list[m.SshKey]) -> list[str] | None:
    """The fingerprints of these keys; None if there are none, or one cannot be read."""
    try:
        return sorted({key.fingerprint or fingerprint(key.public_key) for key in keys}) or None
    except ValueError:
        return None


def fingerprints_of(request: Request, ids: list[str] | None) -> list[str] | None:
    """The fingerprints of the keys with these ids; None if not all of them can be told."""
    return fingerprints(installed_keys(request, ids))
