"""Pages of lists and their cursors, which are signed: a cursor is valid only for the operation, the account,
the mode and the filters of the list it came from.
"""

import json
from collections.abc import Iterable
from hashlib import sha256
from itertools import islice
from typing import TypeVar

from itsdangerous import BadData, URLSafeSerializer

from pulumi_hosting.emulator.messages import Refusal
from pulumi_hosting.emulator.rows import Row

DEFAULT_LIMIT = 50

T = TypeVar("T", bound=Row)


def page(
    rows: Iterable[T], limit: int | None, cursor: str | None, seed: int, *facts: object
) -> tuple[list[T], str | None]:
    """The page of ``rows`` (newest first) that ``cursor`` points at, and the cursor of the next one.

    ``facts``: what a cursor is valid for. 400 ``invalid_cursor`` for one that is damaged or of another list.
    """
    salt = json.dumps(facts, separators=(",", ":"))
    signed = URLSafeSerializer(f"cursor:{seed}", salt, signer_kwargs={"digest_method": sha256})
    if cursor is not None:
        try:
            after: int = signed.loads(cursor)
        except BadData as error:
            raise Refusal("invalid_cursor") from error
        # base64 has several spellings of the same bytes; only ours is accepted
        if signed.dumps(after) != cursor:
            raise Refusal("invalid_cursor")
        rows = (row for row in rows if row.seq < after)
    limit = limit or DEFAULT_LIMIT
    found = list(islice(rows, limit + 1))
    return found[:limit], str(signed.dumps(found[limit - 1].seq)) if len(found) > limit else None
