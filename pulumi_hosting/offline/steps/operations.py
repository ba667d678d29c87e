"""Names of operations, as Pulumi prints and records them."""

SAME = "same"
CREATE = "create"
UPDATE = "update"
DELETE = "delete"
REPLACE = "replace"
CREATE_REPLACEMENT = "create-replacement"
DELETE_REPLACED = "delete-replaced"
READ = "read"
READ_REPLACEMENT = "read-replacement"
REFRESH = "refresh"
DISCARD = "discard"
DISCARD_REPLACED = "discard-replaced"
REMOVE_PENDING_REPLACE = "remove-pending-replace"
IMPORT = "import"
IMPORT_REPLACEMENT = "import-replacement"

SIGNS = {
    SAME: " ",
    CREATE: "+",
    UPDATE: "~",
    DELETE: "-",
    REPLACE: "+-",
    CREATE_REPLACEMENT: "++",
    DELETE_REPLACED: "--",
    READ: ">",
    READ_REPLACEMENT: ">>",
    REFRESH: "~",
    DISCARD: "<",
    DISCARD_REPLACED: "<<",
    IMPORT: "=",
    IMPORT_REPLACEMENT: "=>",
}
DELETES = (DELETE, DELETE_REPLACED, DISCARD, DISCARD_REPLACED, REMOVE_PENDING_REPLACE)
NO_CHANGE = frozenset({SAME, READ, DISCARD, READ_REPLACEMENT})
"""Operations that `--expect-no-changes` allows."""


def verb(op: str, *, done: bool) -> str:
    """What an operation does, or has done: `create replacement`, `discarded original`."""
    act, _, kind = op.partition("-")
    if act == "read":
        kind = f"for {kind}" if kind else ""
    elif done:
        act += "d" if act.endswith("e") else "ed"
    return f"{act} {'original' if kind == 'replaced' else kind}".rstrip()
