"""Parts of the snapshot as text, for those who keep them in files.

Only fields that the models name are written, and the mark of an emulator, which tells its accounts apart.
Others may be secrets of a later version of the API, and secrets that are known are left out.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from pulumi_hosting.api import operations
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.lenient import item_model
from pulumi_hosting.client.results import Damaged
from pulumi_hosting.session.account_snapshot import Change, Kept

Texts = dict[int, tuple[Any, str]]
"""Objects whose text is known, with it, by ``id()``."""


def to_text(kept: Kept, texts: Texts) -> str:
    """``texts``: is used, and then holds what ``kept`` consists of."""
    known: Texts = {}

    def text_of(row: Any) -> str | None:
        if row is None:
            return None
        found = texts.get(id(row)) or (row, json.dumps(plain(row)))
        known[id(row)] = found
        return found[1]

    # A list with an object that could not be read proves nothing: others must ask for it again.
    whole = not any(isinstance(row, Damaged) for rows in kept.rows.values() for row in rows.values())
    written = json.dumps(
        {
            "at": kept.at if whole else None,
            "rows": {
                operation: {key: text_of(row) for key, row in rows.items()}
                for operation, rows in (kept.rows.items() if whole else ())
            },
            "doubted": sorted(kept.doubted),
            "is_asked": kept.is_asked,
            "changes": [
                [change.action, change.part, change.operation, change.key, text_of(change.row)]
                for change in kept.changes
            ],
            "cursor": kept.cursor,
            "pages": kept.pages,
            "single": kept.single,
        }
    )
    texts.clear()
    texts.update(known)
    return written


def from_text(text: str, texts: Texts) -> Kept:
    """What ``to_text`` returned; ``texts`` then holds what it consists of. Raises ``ValueError`` for any
    other text."""
    found = json.loads(text)
    texts.clear()

    def row_of(operation: str, row: str | None) -> Any:
        if row is None:
            return None
        made = row_model(operation).model_validate_json(row)
        texts[id(made)] = (made, row)
        return made

    try:
        rows = {
            operation: {key: row_of(operation, row) for key, row in rows.items()}
            for operation, rows in found["rows"].items()
        }
        changes = tuple(
            Change(action, part, operation, key, row_of(operation, row))
            for action, part, operation, key, row in found["changes"]
        )
        return Kept(
            **{**found, "rows": rows, "doubted": frozenset(map(tuple, found["doubted"])), "changes": changes}
        )
    except (KeyError, TypeError) as error:
        raise ValueError("not a part of a snapshot") from error


def row_model(operation: str) -> Any:
    """What a list holds; the answer itself if it is no list."""
    model: Any = next(iter(operations.BY_ID[operation].responses.values()))
    return item_model(model) or model


def plain(value: Any) -> Any:
    """An object of the API as JSON has it: named fields only, without nulls and without secrets."""
    if isinstance(value, BaseModel):
        return {
            name: plain(field)
            for name in (*type(value).model_fields, "emulator_start")
            if (field := getattr(value, name, None)) is not None and not isinstance(field, Secret)
        }
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items() if not isinstance(item, Secret)}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
