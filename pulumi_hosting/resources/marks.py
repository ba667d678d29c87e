"""The ownership mark behind a text that people can see and edit (notes, descriptions): ``text [iac:xxxxxxxx]``."""


def split_mark(text: str | None) -> tuple[str, str | None]:
    """The text as its author wrote it, and the mark behind it.

    >>> split_mark("the shop [iac:abcdefgh]")
    ('the shop', '[iac:abcdefgh]')
    """
    text = text or ""
    head, bracket, tail = text.rpartition("[iac:")
    if bracket and tail.endswith("]") and len(tail) == 9:
        return head.rstrip(), bracket + tail
    return text, None


def with_mark(text: str, own_mark: str) -> str:
    return f"{text} {own_mark}" if text else own_mark
