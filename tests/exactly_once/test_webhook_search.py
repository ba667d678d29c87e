"""Which webhook subscriptions are a resource's, and what is done with a second one: an account in memory."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import HostingError, NotFound
from pulumi_hosting.client.words import Words
from pulumi_hosting.exactly_once import webhook_search
from pulumi_hosting.exactly_once.ownership_tag import ownership_tag
from pulumi_hosting.provider.failures import WORDS
from pulumi_hosting.session.errors import ResourceConflict
from pulumi_hosting.session.request import Request

ME = "pulumi:t/dev/webhook_subscription/hook"
OTHER = "pulumi:t/prod/webhook_subscription/hook"
TAG, OTHER_TAG = ownership_tag(ME), ownership_tag(OTHER)
URL, ELSEWHERE = "https://hooks.example.com/x", "https://hooks.example.com/y"
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
MINUTE, WEEK = timedelta(minutes=1), timedelta(days=7)


def hook(id: int, tag: str | None = TAG, url: str = URL, age: timedelta | None = MINUTE) -> m.Subscription:
    created_at = None if age is None else NOW - age
    return m.Subscription(id=id, url=url, events=["*"], description=tag, created_at=created_at)


@dataclass
class Service:
    """The part of a client that webhooks need. ``accepted``: subscriptions of which a receiver accepted a
    delivery; ``failure``: what every request fails with."""

    rows: list[m.Subscription]
    accepted: frozenset[int] = frozenset()
    failure: HostingError | None = None
    deleted: list[int] = field(default_factory=list)
    words: Words = WORDS

    @property
    def webhooks(self) -> Any:
        return SimpleNamespace(
            list=self.list, delete=self.delete, deliveries=SimpleNamespace(list=self.deliveries)
        )

    def list(self) -> list[m.Subscription]:
        if self.failure is not None:
            raise self.failure
        return [*self.rows]

    def delete(self, id: int) -> None:
        if self.failure is not None:
            raise self.failure
        self.deleted.append(id)

    def deliveries(self, id: int, **query: Any) -> Any:
        assert query == {"status": "delivered", "limit": 1}
        return iter(["a delivery"] if id in self.accepted else [])


@dataclass
class Lines:
    """What a request told its user."""

    info: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def asked(
    service: Service,
    lines: Lines | None = None,
    *,
    others: frozenset[str] = frozenset(),
    **facts: Any,
) -> Request:
    """A request of this resource. ``others``: ids that other declarations have."""
    lines = lines or Lines()

    settings = {"strict": False, "scope": None, "starts_empty": False}
    settings |= {name: facts.pop(name) for name in settings if name in facts}
    given = {"name_is_identity": False, **facts}
    return cast(
        Request,
        SimpleNamespace(
            client=service,
            identity=ME,
            has_owner=(others | facts.get("owned", frozenset())).__contains__,
            service_now=lambda: NOW,
            poller=lambda seconds: None,
            session=SimpleNamespace(**settings),
            kind="webhook_subscription",
            info=lines.info.append,
            warn=lines.warnings.append,
            **given,
        ),
    )


def ids(found: list[m.Subscription]) -> list[int]:
    return [one.id for one in found]


# --- addresses and lists


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("https://hooks.example.com", "https://hooks.example.com/"),
        ("HTTPS://Hooks.Example.COM/Path?Q=A", "https://hooks.example.com/Path?Q=A"),
        ("https://hooks.example.com:443/x", "https://hooks.example.com/x"),
        ("https://hooks.example.com:8443/x", "https://hooks.example.com:8443/x"),
        ("https://hooks.example.com/x#part", "https://hooks.example.com/x"),
        ("/x", "/x"),
    ],
)
def test_an_address_has_one_spelling(url: str, plain: str) -> None:
    assert webhook_search.plain_url(url) == plain


def test_the_list_is_shared_for_as_long_as_the_caller_says() -> None:
    asked_for: list[Any] = []

    def snapshot(part: str, ask: Any, max_age: float) -> Any:
        asked_for.append((part, max_age))
        return ask()

    request = asked(Service([hook(1)]))
    cast(Any, request).session = SimpleNamespace(snapshot=snapshot)
    assert ids(webhook_search.subscriptions(request)) == [1]
    assert ids(webhook_search.subscriptions(request, 0.0)) == [1]
    assert asked_for == [("webhooks", 60.0), ("webhooks", 0.0)]


def test_those_of_an_address_come_with_the_lowest_id_first() -> None:
    listed = [hook(3), hook(1, url="https://HOOKS.example.com/x"), hook(2, url=ELSEWHERE)]
    assert ids(webhook_search.of_url(listed, "https://hooks.example.com:443/x")) == [1, 3]


# --- tags


@pytest.mark.parametrize(
    ("tags", "new"),
    [
        ([], TAG),
        ([None, OTHER_TAG], TAG),
        ([TAG], ownership_tag(ME, 1)),
        ([TAG, ownership_tag(ME, 12), ownership_tag(ME, 3), OTHER_TAG], ownership_tag(ME, 13)),
    ],
)
def test_a_new_one_gets_a_tag_that_none_has(tags: list[str | None], new: str) -> None:
    request = asked(Service([]))
    listed = [hook(number, tag) for number, tag in enumerate(tags, 1)]
    assert webhook_search.new_tag(request, listed) == new


def test_where_the_name_is_the_identity_the_tag_stays_the_first() -> None:
    request = asked(Service([]), name_is_identity=True)
    assert webhook_search.new_tag(request, [hook(1)]) == TAG


# --- what an interrupted run made


def test_what_carries_the_tag_and_is_in_no_state_is_found() -> None:
    service = Service([hook(9), hook(7), hook(1, OTHER_TAG), hook(2, None), hook(3), hook(4)])
    request = asked(service, owned=frozenset({"3"}), others=frozenset({"4"}))
    assert ids(webhook_search.find_tagged(request, URL)) == [7, 9]
    assert webhook_search.find_tagged(asked(Service([hook(1, OTHER_TAG)])), URL) == []
    assert webhook_search.find_tagged(asked(Service([hook(1)]), name_is_identity=True), URL) == []


def test_it_may_be_seven_days_old() -> None:
    assert ids(webhook_search.find_tagged(asked(Service([hook(1, age=WEEK)])), URL)) == [1]
    strict = asked(Service([hook(1)]), strict=True, scope="shop")
    assert ids(webhook_search.find_tagged(strict, URL)) == [1]


@pytest.mark.parametrize(
    ("row", "facts", "when", "why"),
    [
        (hook(5, url=ELSEWHERE), {}, ", made 1 min ago", f"it delivers to {ELSEWHERE}, not to {URL}"),
        (
            hook(5, age=WEEK + timedelta(seconds=1)),
            {},
            ", made 7 days ago",
            "it is older than seven days, and another state may have it",
        ),
        (hook(5, age=None), {}, "", "it is older than seven days, and another state may have it"),
        (
            hook(5),
            {"strict": True},
            ", made 1 min ago",
            "strict is set and hosting:scope is not, and it may be another backend's",
        ),
    ],
)
def test_what_may_be_another_states_is_not_taken_over(
    row: m.Subscription, facts: dict[str, Any], when: str, why: str
) -> None:
    with pytest.raises(ResourceConflict) as caught:
        webhook_search.find_tagged(asked(Service([hook(6), row]), **facts), URL)
    assert caught.value.id == "5"
    assert str(caught.value) == (
        f"webhook subscription 5{when} carries this resource's ownership tag: {why}; nothing was changed. "
        "Next: set adopt_id=5 to take it over, or give this resource another name"
    )


# --- second ones


@pytest.mark.parametrize(
    ("other", "is_double"),
    [
        (hook(6), True),
        (hook(6, url="https://hooks.example.com:443/x"), True),
        (hook(6, age=timedelta()), True),
        (hook(6, age=MINUTE - WEEK), True),
        (hook(6, age=MINUTE - WEEK - timedelta(seconds=1)), False),
        (hook(6, age=MINUTE + timedelta(seconds=1)), False),
        (hook(6, age=None), False),
        (hook(5), False),
        (hook(4), False),
        (hook(6, url=ELSEWHERE), False),
        (hook(6, ownership_tag(ME, 1)), False),
        (hook(6, OTHER_TAG), False),
        (hook(6, None), False),
        (hook(8), False),
    ],
)
def test_a_second_one_is_certain_or_stays(other: m.Subscription, is_double: bool) -> None:
    request = asked(Service([], accepted=frozenset({8})))
    found = webhook_search.doubles(request, [hook(5), other], hook(5))
    assert ids(found) == ([other.id] if is_double else [])


def test_without_a_time_or_a_tag_of_its_own_a_resource_has_no_second_one() -> None:
    request = asked(Service([]))
    assert webhook_search.doubles(request, [hook(6)], hook(5, age=None)) == []
    assert webhook_search.doubles(request, [hook(6, OTHER_TAG)], hook(5, OTHER_TAG)) == []
    assert webhook_search.doubles(request, [hook(6, None)], hook(5, None)) == []
    assert webhook_search.alike([hook(6, None)], hook(5, None)) == []


def test_under_strict_a_second_one_is_certain_with_a_scope_only() -> None:
    for scope, expected in ((None, []), ("shop", [6])):
        request = asked(Service([]), strict=True, scope=scope)
        assert ids(webhook_search.doubles(request, [hook(6)], hook(5))) == expected


def test_a_second_one_is_announced_and_one_that_may_be_anothers_is_named() -> None:
    lines = Lines()
    request = asked(Service([], accepted=frozenset({7})), lines)
    webhook_search.remark_on_doubles(request, [hook(5), hook(6), hook(7), hook(8, OTHER_TAG)], hook(5))
    assert lines.warnings == [
        "webhook subscription 6 is a second one of this resource beside 5: a request of an interrupted run "
        "was processed late. Next: run pulumi up, which deletes it",
        "webhook subscriptions 5 and 7 carry the same ownership tag and deliver to the same url, so that "
        "every event comes twice; another state may have the second one, so it stays. Next: delete 7 in the "
        "control panel if no other stack uses it",
    ]


def test_second_ones_are_deleted_and_reported() -> None:
    lines, service = Lines(), Service([])
    webhook_search.delete_doubles(asked(service, lines), [hook(6), hook(7)])
    assert service.deleted == [6, 7]
    assert lines.info == [
        f"webhook subscription {id} is a second one of this resource; it is deleted" for id in (6, 7)
    ]
    assert lines.warnings == []


def test_one_that_cannot_be_deleted_is_reported() -> None:
    lines = Lines()
    request = asked(Service([], failure=HostingError("no answer")), lines)
    webhook_search.delete_doubles(request, [hook(6)])
    assert lines.warnings == [
        "webhook subscription 6 is a second one of this resource and could not be deleted: no answer"
    ]
    assert lines.info == []


def test_one_that_is_gone_is_deleted() -> None:
    lines = Lines()
    gone = NotFound(status=404, code="not_found", message="")
    webhook_search.delete_doubles(asked(Service([], failure=gone), lines), [hook(6)])
    assert (len(lines.info), lines.warnings) == (1, [])


# --- runs at the same moment


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [hook(5)],
        [hook(5), hook(6)],
        [hook(4, OTHER_TAG), hook(3, url=ELSEWHERE), hook(5)],
        [hook(4, None), hook(5)],
    ],
)
def test_the_one_with_the_lowest_id_is_kept(rows: list[m.Subscription]) -> None:
    lines, service = Lines(), Service(rows)
    assert webhook_search.keep_first(asked(service, lines), URL, hook(5)) is None
    assert (service.deleted, lines.warnings) == ([], [])


def test_the_later_one_is_deleted_and_the_next_run_takes_over_the_first() -> None:
    service = Service([hook(6), hook(5), hook(4), hook(3)])
    request = asked(service, owned=frozenset({"3"}))
    with pytest.raises(ResourceConflict) as caught:
        webhook_search.keep_first(request, URL, hook(5))
    assert (service.deleted, caught.value.id) == ([5], "4")
    assert str(caught.value) == (
        "another run made webhook subscription 4 at the same moment, and only that run knows its secret, or "
        "a request of an interrupted run was processed late; this run's own was deleted. Next: run pulumi up "
        "again; it takes over what is left, and makes a new secret"
    )


def test_where_the_name_is_the_identity_the_first_of_the_address_is_used() -> None:
    lines, service = Lines(), Service([hook(4, None), hook(5)])
    request = asked(service, lines, name_is_identity=True)
    first = webhook_search.keep_first(request, URL, hook(5))
    assert first is not None
    assert (first.id, service.deleted) == (4, [5])
    assert lines.warnings == [
        "another run made webhook subscription 4 at the same moment, and only that run knows its secret; "
        "this run's own was deleted"
    ]


def test_an_own_one_that_cannot_be_deleted_is_kept() -> None:
    class Refusing(Service):
        def delete(self, id: int) -> None:
            raise HostingError("no answer")

    lines = Lines()
    request = asked(Refusing([hook(4), hook(5)]), lines)
    assert webhook_search.keep_first(request, URL, hook(5)) is None
    assert lines.warnings == [
        "webhook subscription 5 is a second one beside 4 and could not be deleted: no answer"
    ]


def test_without_a_list_the_new_one_is_kept() -> None:
    lines = Lines()
    request = asked(Service([], failure=HostingError("no answer")), lines)
    assert webhook_search.keep_first(request, URL, hook(5)) is None
    assert lines.warnings == [
        "webhook subscription 5 was made, and whether another run made one too is not known: no answer"
    ]


# --- others of the address


def test_others_that_deliver_to_the_address_are_named_with_the_next_step() -> None:
    lines = Lines()
    listed = [
        hook(9, None),
        hook(8, OTHER_TAG),
        hook(7),
        hook(6, None),
        hook(5, None),
        hook(4, None, ELSEWHERE),
    ]
    request = asked(Service([]), lines, owned=frozenset({"6"}), others=frozenset({"5"}))
    webhook_search.remark_on_others(request, listed, URL)
    twice = "delivers to its url already; every event that both want comes twice. Next: "
    assert lines.warnings == [
        f"subscription 8 {twice}declare it in one place only, unless both are meant: another resource's tag "
        "is on it",
        f"subscription 9 {twice}set adopt_id to 9 to take it over, or delete it",
    ]
