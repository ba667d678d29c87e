"""``--account FILE``: an account to start with, as a person can read and write it.

YAML (or JSON): a mapping of ``account`` and the kinds of :mod:`~pulumi_hosting.emulator.control.made_by_hand`
to lists of their columns. What the catalog lacks is that of a fresh service.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field
from pydantic_core import to_json

from pulumi_hosting.api.error_codes import parted
from pulumi_hosting.api.secrets import quoted
from pulumi_hosting.emulator.control.endpoint import (
    LEFT_OUT,
    Balance,
    Body,
    ControlError,
    M,
    Percent,
    assign,
    parsed,
)
from pulumi_hosting.emulator.control.made_by_hand import INVOICES, KINDS
from pulumi_hosting.emulator.persistence import UnreadableStateFile
from pulumi_hosting.emulator.server_lifecycle import skip_addresses
from pulumi_hosting.emulator.store import Store

_CATALOG = ("locations", "tariffs", "images", "zones")


class UnusableAccountFile(UnreadableStateFile):
    """The account file cannot be used; the message is one line for the user."""


class AccountSection(Body):
    id: int = Field(LEFT_OUT, ge=1)
    currency: str = LEFT_OUT
    balance: Balance = LEFT_OUT
    group_discount_percent: Percent = LEFT_OUT
    loyalty_discount_percent: Percent = LEFT_OUT


def contents(path: Path) -> Any:
    """What the file says. Raises ``UnusableAccountFile`` if it is no YAML."""
    try:
        return yaml.safe_load(path.read_text("utf-8")) or {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UnusableAccountFile(f"cannot read {path}: {' '.join(str(error).split())}") from error


def preparation(path: Path) -> Callable[[Store], None]:
    """What fills a fresh store with what the file lists. Raises ``UnusableAccountFile``, also when called."""
    content = contents(path)

    def prepare(store: Store) -> None:
        try:
            fill(store, content)
        except ControlError as error:
            raise UnusableAccountFile(f"{path}: {parted(str(error))[0]}. Next: correct the file") from error

    return prepare


def fill(store: Store, content: Mapping[str, Any]) -> None:
    """Add what ``content`` lists to a store with one account. Raises ``ControlError``, naming the entry."""
    kinds = {kind.section: kind for kind in (*KINDS, INVOICES)}
    if not isinstance(content, Mapping) or (unknown := content.keys() - {"account", *kinds}):
        names = ", ".join(map(str, unknown)) if isinstance(content, Mapping) else repr(content)
        raise ControlError(f"unknown section: {names}; known: account, {', '.join(kinds)}")
    account = next(iter(store.accounts.values()))
    given = _checked("account", AccountSection, content.get("account") or {})
    if given.id is not None:
        store.renumber(account, given.id)
    assign(account, given, "id")
    account.opening = account.balance
    for section, kind in kinds.items():
        if section not in _CATALOG:
            store.add_price_list()
        entries = content.get(section) or []
        if not isinstance(entries, list):
            raise ControlError(f"{section}: must be a list, not {quoted(entries)}")
        for number, entry in enumerate(entries, 1):
            place = f"{section}, entry {number}"
            body = _checked(place, kind.body, entry)
            try:
                kind.add(store, body)
            except ControlError as error:
                raise ControlError(f"{place}: {error}") from error
    skip_addresses(store)


def _checked(place: str, model: type[M], entry: object) -> M:
    try:
        return parsed(model, model.model_validate_json, to_json(entry))
    except ControlError as error:
        raise ControlError(f"{place}: {error}") from error
