"""Page cursors, signed: one is valid only for the operation, the account, the mode and the filters of the
list it came from.
"""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import islice
from typing import TypeVar

from itsdangerous import BadData, URLSafeSerializer

from pulumi_hosting.emulator.messages import Refusal
from pulumi_hosting.emulator.rows import Row

DEFAULT_LIMIT = 50

T = TypeVar("T", bound=Row)


class Cursors:
    """Writes and reads the cursors of one list. The page size is not part of the signature: it may change
    between pages.
    """

    def __init__(
        self, seed: int, operation: str, account_id: int, mode: str, filters: Mapping[str, object]
    ) -> None:
        kept = {
            name: str(value) for name, value in sorted(filters.items()) if name not in ("cursor", "limit")
        }
        salt = json.dumps([operation, account_id, mode, kept], separators=(",", ":"))
        self._serializer = URLSafeSerializer(f"cursor:{seed}", salt, signer_kwargs={"digest_method": sha256})

    def write(self, position: int) -> str:
        return str(self._serializer.dumps(position))

    def read(self, cursor: str) -> int:
        """The position in a cursor; 400 ``invalid_cursor`` when it is damaged or belongs to another list."""
        try:
            position: int = self._serializer.loads(cursor)
        except BadData as error:
            raise Refusal("invalid_cursor") from error
        # base64 has several spellings of the same bytes; only ours is accepted
        if self.write(position) != cursor:
            raise Refusal("invalid_cursor")
        return position


def cut(rows: Iterable[T], limit: int, after: int | None) -> tuple[list[T], bool]:
    """At most ``limit`` of ``rows`` (newest first) that are older than position ``after``, and whether more
    follow.
    """
    older = (row for row in rows if after is None or row.seq < after)
    page = list(islice(older, limit + 1))
    return page[:limit], len(page) > limit
