"""Ownership tags: who holds an object, written behind a text that people can see and edit (server notes, webhook descriptions).

``text [iac2:xxxxxxxx]`` is the tag of whoever made the object, ``text [iac2:xxxxxxxx.2]`` that of the same identity after two takeovers.
The state records the tag that was last written; a deletion whose recorded tag is not the one on the account concerns an object that a
later run took over. Tags of the first scheme (``[iac:xxxxxxxx]``) are split off and belong to nobody who runs now.
"""

import re

from pulumi_hosting.resources.keys import digest

_TAG = re.compile(r"\s*(\[(?:iac2:[a-z2-7]{8}(?:\.[1-9][0-9]{0,8})?|iac:[^\[\]]{8})\])\Z")


def split_tag(text: str | None) -> tuple[str, str | None]:
    """The text as its author wrote it, and the tag behind it.

    >>> split_tag("the shop [iac2:abcdefgh.1]")
    ('the shop', '[iac2:abcdefgh.1]')
    >>> split_tag("the shop [iac:abcdefgh]")
    ('the shop', '[iac:abcdefgh]')
    """
    text = text or ""
    found = _TAG.search(text)
    return (text[: found.start()], found[1]) if found else (text, None)


def with_tag(text: str | None, tag: str | None) -> str:
    """The text with a tag behind it, in place of any that was there; without ``tag`` only the text."""
    text = split_tag(text)[0]
    return " ".join(part for part in (text, tag) if part)


def ownership_tag(identity: str, takeovers: int = 0) -> str:
    """The tag of an identity that has taken the object over ``takeovers`` times.

    >>> ownership_tag("pulumi:demo/dev/server/web-1"), ownership_tag("pulumi:demo/dev/server/web-1", 2)
    ('[iac2:wns2mcxo]', '[iac2:wns2mcxo.2]')
    """
    return f"[iac2:{digest(identity.encode())[:8]}{f'.{takeovers}' if takeovers else ''}]"


def is_tag_of(tag: str | None, identity: str) -> bool:
    """Whether the tag is the identity's, after any number of takeovers.

    >>> is_tag_of("[iac2:wns2mcxo.2]", "pulumi:demo/dev/server/web-1"), is_tag_of(None, "pulumi:demo/dev/server/web-1")
    (True, False)
    """
    return tag is not None and _holder(tag) == _holder(ownership_tag(identity))


def is_same_holder(tag: str, other: str) -> bool:
    """Whether two tags are of one identity, after any numbers of takeovers."""
    return _holder(tag) == _holder(other)


def next_tag(tag: str | None, identity: str) -> str:
    """The tag that a takeover by ``identity`` writes in place of ``tag``: its own, one count up where it was its own already.

    >>> next_tag(None, "pulumi:demo/dev/server/web-1"), next_tag("[iac2:wns2mcxo.2]", "pulumi:demo/dev/server/web-1")
    ('[iac2:wns2mcxo]', '[iac2:wns2mcxo.3]')
    """
    if tag is None or not is_tag_of(tag, identity):
        return ownership_tag(identity)
    count = tag.rstrip("]").partition(".")[2]
    return ownership_tag(identity, int(count or 0) + 1)


def _holder(tag: str) -> str:
    return tag.rstrip("]").partition(".")[0]


# The names of before, until their users have moved.
split_mark = split_tag
with_mark = with_tag
