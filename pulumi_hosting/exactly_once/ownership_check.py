"""May an object be taken over, changed or deleted? The one rule; every write asks it.

A state can be wrong: restored from a backup, edited by hand, copied to another backend. So what it recorded
of an object is compared with what the account shows of the object with that id:

- An ownership tag of this resource proves that the object is its own, whatever else was changed in the
  control panel. The tag of a later run, or of another resource, proves that it is not.
- Without a tag the other facts decide. If all are as recorded, a person edited the text that the tag stands
  behind: the tag is written again. If one differs, it is another object.

What nothing but a tag or a key says to be this resource's is taken over if :func:`why_not_taken_over` finds
no reason against it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeVar

from pulumi_hosting.exactly_once.idempotency_keys import KEY_MEMORY
from pulumi_hosting.exactly_once.ownership_tag import is_same_holder, is_tag, is_tag_of, takeovers
from pulumi_hosting.exactly_once.purchase_journal import is_interrupted
from pulumi_hosting.session.errors import NotOurs
from pulumi_hosting.session.request import Request

_CRASHED_WITHIN = timedelta(hours=1)
"""How long after a crash it is believed that there was one, though no journal of this machine shows it."""
_BOUGHT = ("server", "server_ip", "domain")
"""Kinds of objects that cost money, of which the journal shows a crash."""
_SAID_WITHIN = 1.0  # seconds within which the declarations of a program say what is theirs
_TAKEN_OVER = (*_BOUGHT, "webhook_subscription")

T = TypeVar("T")
Facts = Mapping[str, str | None]
"""What tells an object from every other one, by name of the fact; None: not known, and not compared."""


Intent = Literal["changed", "deleted"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether an object may be changed or deleted.

    - ``decision``: ``repair``: it may, and its tag is missing.
    - ``reason``: why not: ``later run`` (of the same resource), ``another's`` tag, or another ``object`` than
      the recorded one.
    - ``differences``: the facts that are not as recorded, in words. They count only if the object does not
      carry this resource's tag.
    """

    decision: Literal["allowed", "repair", "stop"]
    reason: Literal["later run", "another's", "object", None] = None
    differences: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        """The reason as a clause."""
        if self.reason == "later run":
            return "a later run took it over, from another backend perhaps"
        differing = f" ({', '.join(self.differences)})" if self.differences else ""
        if self.reason == "another's":
            return f"it carries the ownership tag of another resource{differing}"
        return f"it is not what the state recorded{differing}"


def compare(
    identity: str, *, recorded_tag: str | None, shown_tag: str | None, recorded: Facts, shown: Facts
) -> Comparison:
    """Whether the object with the id of a state is what the state recorded.

    ``shown_tag`` is what stands on the account; one of the first scheme counts as none.

    >>> mine, id = "[iac2:wns2mcxo]", "pulumi:demo/dev/server/web-1"
    >>> web, db = {"name": "web"}, {"name": "db"}
    >>> compare(id, recorded_tag=mine, shown_tag=mine, recorded=web, shown=db).decision
    'allowed'
    >>> compare(id, recorded_tag=mine, shown_tag=None, recorded=web, shown=web).decision
    'repair'
    >>> compare(id, recorded_tag=mine, shown_tag=None, recorded=web, shown=db).why
    "it is not what the state recorded (name is 'db', not 'web')"
    """
    differing = differences(shown, recorded)
    if shown_tag is not None and is_tag(shown_tag):
        if recorded_tag is not None and is_same_holder(recorded_tag, shown_tag):
            later = takeovers(shown_tag) > takeovers(recorded_tag)
            return Comparison("stop", "later run") if later else Comparison("allowed")
        if is_tag_of(shown_tag, identity):
            return Comparison("allowed")
        return Comparison("stop", "another's", differing)
    if differing:
        return Comparison("stop", "object", differing)
    return Comparison("allowed" if recorded_tag is None else "repair")


def differences(shown: Mapping[str, Any], wanted: Mapping[str, Any]) -> tuple[str, ...]:
    """Which of the ``wanted`` facts are known and others than ``shown``, in words. A list means any of it.

    >>> differences({"os": "debian-12", "tariff_id": None}, {"os": "ubuntu-24.04", "tariff_id": 2})
    ("os is 'debian-12', not 'ubuntu-24.04'",)
    >>> differences({"tariff_id": 4, "os": "debian-12"}, {"tariff_id": [2, 3], "os": ["debian-12"]})
    ('tariff_id is 4, not 2 or 3',)
    """
    found = []
    for name, value in wanted.items():
        meant = value if isinstance(value, list) else [value]
        if value is not None and shown.get(name) not in (None, *meant):
            found.append(f"{name} is {shown[name]!r}, not {' or '.join(map(repr, meant))}")
    return tuple(found)


def must_be_the_recorded_one(title: str, id: str, recorded: Facts, shown: Facts, outcome: str) -> None:
    """Raise ``NotOurs`` if an object that carries no tag is another one than the state recorded. ``outcome``:
    such as ``nothing was deleted``."""
    if differing := differences(shown, recorded):
        raise NotOurs(
            id, None, "object", f"{title} {id}: {Comparison('stop', 'object', differing).why}; {outcome}"
        )


def must_be_own(
    request: Request, compared: Comparison, title: str, id: str, tag: str | None, intent: Intent
) -> None:
    """Raise ``NotOurs`` if the object must not be changed or deleted; warn if its tag is missing. ``tag``:
    the one on the account."""
    if compared.reason is not None:
        raise NotOurs(id, tag, compared.reason, f"{title} {id}: {compared.why}; nothing was {intent}")
    if compared.decision == "repair":
        then = "it is deleted" if intent == "deleted" else "the tag is written again"
        request.warn(
            f"{title} {id} carries no ownership tag, after an edit in the control panel or a run that could "
            f"not write it; all else is as the state recorded it, so {then}"
        )


def why_not_taken_over(request: Request, ordered: timedelta | None) -> str | None:
    """Why what a tag or a key says to be this resource's must not be taken over without a person's word; None
    if it may. ``ordered``: how long ago it was made; None if that is not shown."""
    if ordered is not None and ordered > KEY_MEMORY and not _is_of_own_crash(request, ordered):
        return "it is older than seven days, and another state may have it"
    if request.session.strict and request.session.scope is None:
        return "strict is set and hosting:scope is not, and it may be another backend's"
    if (
        ordered is not None
        and ordered > _CRASHED_WITHIN
        and request.session.scope is None
        and _is_first_run(request)
        and not _is_of_own_crash(request, ordered)
    ):
        return (
            "the state of this stack is empty, and another backend with the same names may have it, from "
            "which hosting:scope tells this one apart"
        )
    return None


def _is_of_own_crash(request: Request, ordered: timedelta) -> bool:
    """Whether a run of this machine was interrupted when it bought it for this declaration."""
    if request.kind not in _BOUGHT:
        return False
    return is_interrupted(request, request.kind, request.service_now() - ordered)


def after_others_spoke(request: Request, look: Callable[[], T]) -> T:
    """What ``look`` finds once the other declarations of a program had a second to say what is theirs: at
    once if it finds nothing."""
    wait = request.poller(_SAID_WITHIN)
    while (found := look()) and not wait.over:
        wait.pause()
    return found


def _is_first_run(request: Request) -> bool:
    """Whether the state has nothing, as far as the engine told within a second."""
    if request.kind not in _TAKEN_OVER:
        return False
    return after_others_spoke(request, lambda: request.session.starts_empty)
