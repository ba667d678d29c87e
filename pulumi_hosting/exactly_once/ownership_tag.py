"""Ownership tags: who holds an object, written behind a text that people can see and edit (server notes,
webhook descriptions).

``text [iac2:xxxxxxxx]`` is the tag of whoever made the object, ``text [iac2:xxxxxxxx.2]`` that of the same
identity after two takeovers. The state records the tag that was last written; a deletion whose recorded tag
is not the one on the account concerns an object that a later run took over. Tags of the first scheme
(``[iac:xxxxxxxx]``) are split off and belong to no resource of this version.
"""

import re

from pulumi_hosting.exactly_once.idempotency_keys import digest

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


def untagged(text: str) -> str:
    """A text that a person gives, without spaces at its end. Raises ``ValueError`` if a tag ends it."""
    if split_tag(text)[1]:
        raise ValueError("must not end in [iac…]: that tag is kept by the provider")
    return text.rstrip()


def with_tag(text: str | None, tag: str | None) -> str:
    """The text with a tag behind it, in place of any that was there; without ``tag`` only the text."""
    text = split_tag(text)[0]
    return " ".join(part for part in (text, tag) if part)


def ownership_tag(identity: str, count: int = 0) -> str:
    """The tag of an identity that has taken the object over ``count`` times.

    >>> ownership_tag("pulumi:demo/dev/server/web-1"), ownership_tag("pulumi:demo/dev/server/web-1", 2)
    ('[iac2:wns2mcxo]', '[iac2:wns2mcxo.2]')
    """
    return f"[iac2:{digest(identity.encode())[:8]}{f'.{count}' if count else ''}]"


def is_tag(tag: str | None) -> bool:
    """Whether it is a tag of the present scheme."""
    return tag is not None and tag.startswith("[iac2:")


def is_tag_of(tag: str | None, identity: str) -> bool:
    """Whether the tag is the identity's, after any number of takeovers.

    >>> is_tag_of("[iac2:wns2mcxo.2]", "pulumi:demo/dev/server/web-1")
    True
    >>> is_tag_of(None, "pulumi:demo/dev/server/web-1")
    False
    """
    return tag is not None and _holder(tag) == _holder(ownership_tag(identity))


def is_same_holder(tag: str, other: str) -> bool:
    """Whether two tags are of one identity, after any numbers of takeovers."""
    return _holder(tag) == _holder(other)


def next_tag(tag: str | None, identity: str) -> str:
    """The tag that a takeover by ``identity`` writes in place of ``tag``: its own, counted one up. If
    there was none, an earlier run may have failed to write the first one, so it is the second.

    >>> next_tag(None, "pulumi:demo/dev/server/web-1")
    '[iac2:wns2mcxo.1]'
    >>> next_tag("[iac2:wns2mcxo.2]", "pulumi:demo/dev/server/web-1")
    '[iac2:wns2mcxo.3]'
    """
    return ownership_tag(
        identity, (takeovers(tag) if tag is not None and is_tag_of(tag, identity) else 0) + 1
    )


def carried_on(tag: str | None, before: str, after: str, *, takes: bool = False) -> str:
    """The tag behind the text of an object that ``before`` names until a change, and ``after`` from then on.
    The number of takeovers stays. So does another identity's tag, unless ``takes``: it was recorded when the
    object was imported.

    >>> carried_on("[iac2:wns2mcxo.2]", "pulumi:demo/dev/server/web-1", "pulumi:demo/dev/server/web-1")
    '[iac2:wns2mcxo.2]'
    >>> carried_on("[iac2:abcdefgh]", "ansible:/server/web", "ansible:/server/www")
    '[iac2:abcdefgh]'
    """
    if tag is None:
        return ownership_tag(after)
    if is_tag_of(tag, before):
        return ownership_tag(after, takeovers(tag))
    return next_tag(tag, after) if takes else tag


def takeovers(tag: str) -> int:
    """How many takeovers a tag counts."""
    return int(tag.rstrip("]").partition(".")[2] or 0)


def _holder(tag: str) -> str:
    return tag.rstrip("]").partition(".")[0]
