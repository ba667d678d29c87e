"""Names of operations, as Pulumi prints and records them."""

from typing import Literal

_Plain = Literal["same", "create", "update", "delete", "replace", "read", "refresh", "discard", "import"]
_New = Literal["create-replacement", "read-replacement", "import-replacement"]
_Old = Literal["delete-replaced", "discard-replaced", "remove-pending-replace"]
Op = _Plain | _New | _Old

SIGNS = {
    "same": " ",
    "create": "+",
    "update": "~",
    "delete": "-",
    "replace": "+-",
    "create-replacement": "++",
    "delete-replaced": "--",
    "read": ">",
    "read-replacement": ">>",
    "refresh": "~",
    "discard": "<",
    "discard-replaced": "<<",
    "import": "=",
    "import-replacement": "=>",
}
DELETES = ("delete", "delete-replaced", "discard", "discard-replaced", "remove-pending-replace")
NO_CHANGE = frozenset({"same", "read", "discard", "read-replacement"})
"""Operations that `--expect-no-changes` allows."""


def verb(op: str, *, done: bool) -> str:
    """What an operation does, or has done: `create replacement`, `discarded original`."""
    act, _, kind = op.partition("-")
    if act == "read":
        kind = f"for {kind}" if kind else ""
    elif done:
        act += "d" if act.endswith("e") else "ed"
    return f"{act} {'original' if kind == 'replaced' else kind}".rstrip()
