"""What a question with a key shows, and which key is sent after one that is used."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from pulumi_hosting.client.exceptions import ApiError, error_class
from pulumi_hosting.exactly_once.idempotency_keys import (
    NONEXISTENT_ID,
    Ask,
    KeyRing,
    KeyWalk,
    is_bound_to_an_order,
    key_is_used,
    nonexistent_id,
)
from pulumi_hosting.session.errors import ResourceError

RING = KeyRing(7, True, "pulumi:t/dev/server/a", "create_server")


def refusal(status: int, code: str) -> ApiError:
    return error_class(status, code)(status=status, code=code, message="")


def _refused(status: int, code: str) -> bool:
    def ask(id: int, key: str) -> None:
        raise refusal(status, code)

    return key_is_used(ask, "a-key")


@pytest.mark.parametrize("code", ["idempotency_conflict", "idempotency_in_progress"])
def test_a_conflict_shows_the_key_to_be_bound(code: str) -> None:
    assert _refused(409, code)


@pytest.mark.parametrize(
    ("status", "code"), [(404, "not_found"), (409, "service_state"), (429, "rate_limited"), (500, "internal")]
)
def test_any_other_refusal_proves_nothing(status: int, code: str) -> None:
    assert not _refused(status, code)


def test_an_accepted_probe_proves_nothing() -> None:
    assert not key_is_used(lambda id, key: None, "a-key")


def test_what_is_no_answer_is_an_error() -> None:
    def ask(id: int, key: str) -> None:
        raise ConnectionError

    assert not issubclass(ConnectionError, ApiError)
    with pytest.raises(ConnectionError):
        key_is_used(ask, "a-key")


def test_ids_that_nothing_has_are_exact_in_every_reader_and_differ() -> None:
    ids = [nonexistent_id() for _ in range(100)]
    assert len(set(ids)) > 90
    assert all(NONEXISTENT_ID - 2**40 < id <= NONEXISTENT_ID < 2**53 for id in ids)
    assert max(ids) - min(ids) > 2**30


# --- a walk along the keys of one purchase


@dataclass
class Memory:
    """What the service remembers: to which request each key is bound. ``binds``: whether it stores refusals,
    so that a question binds its key too."""

    bound: dict[str, str] = field(default_factory=dict)
    binds: bool = True
    asked: list[str] = field(default_factory=list)

    def ask(self, id: int, key: str) -> None:
        self.asked.append(key)
        if self.bound.get(key, str(id)) != str(id):
            raise refusal(409, "idempotency_conflict")
        if self.binds:
            self.bound[key] = str(id)
        raise refusal(404, "not_found")

    def orders(self, *generations: int) -> "Memory":
        self.bound.update({RING.key(generation): "order" for generation in generations})
        return self


remembers_refusals = pytest.mark.parametrize("binds", [True, False])


@remembers_refusals
def test_one_question_tells_an_order_from_nothing_however_often_it_is_asked(binds: bool) -> None:
    memory = Memory(binds=binds).orders(0)
    for _ in range(3):
        assert is_bound_to_an_order(memory.ask, RING.key(0))
        assert not is_bound_to_an_order(memory.ask, RING.key(1))


@remembers_refusals
def test_the_first_key_is_sent_without_a_question(binds: bool) -> None:
    memory = Memory(binds=binds)
    walk = KeyWalk(RING, ask=memory.ask)
    assert (walk.key, walk.is_fresh, memory.asked) == (RING.key(0), False, [])
    assert KeyWalk(RING, 4, memory.ask).key == RING.key(4)


@remembers_refusals
def test_used_keys_are_left_behind_in_one_go(binds: bool) -> None:
    memory = Memory(binds=binds).orders(*range(20))
    walk = KeyWalk(RING, ask=memory.ask)
    walk.leave()
    assert (walk.generation, walk.key, walk.is_fresh) == (20, RING.key(20), True)
    assert memory.asked == [RING.key(number) for number in range(1, 21)]


@remembers_refusals
def test_a_key_that_is_not_used_is_kept(binds: bool) -> None:
    memory = Memory(binds=binds)
    walk = KeyWalk(RING, 3, memory.ask)
    walk.leave_if_used()
    # The question may have bound it: whether it was the question is asked after the conflict only.
    assert walk.generation == 3
    memory.orders(3)
    walk.leave_if_used()
    assert walk.generation == 4


def test_a_key_that_only_the_question_bound_is_followed_by_the_next_one() -> None:
    memory = Memory().orders(0)
    walk = KeyWalk(RING, ask=memory.ask)
    walk.leave()
    assert walk.is_bound_by_the_question()
    assert (walk.generation, len(memory.asked)) == (2, 2)
    assert not walk.is_bound_by_the_question()  # of this key nothing was asked
    assert walk.generation == 2


def test_a_key_that_another_order_bound_since_the_question_is_not_the_questions() -> None:
    memory = Memory(binds=False).orders(0)
    walk = KeyWalk(RING, ask=memory.ask)
    walk.leave()
    memory.orders(1)
    assert not walk.is_bound_by_the_question()
    assert walk.generation == 1


def test_a_conflict_of_a_key_that_was_not_asked_about_is_another_requests() -> None:
    memory = Memory()
    walk = KeyWalk(RING, ask=memory.ask)
    assert not walk.is_bound_by_the_question()
    assert (walk.generation, memory.asked) == (0, [])


def _forbidden(id: int, key: str) -> None:
    raise refusal(403, "insufficient_scope")


def _accepted(id: int, key: str) -> None:
    return None


@pytest.mark.parametrize("ask", [None, _forbidden, _accepted], ids=["nothing", "forbidden", "accepted"])
def test_if_nothing_tells_which_keys_are_used_the_next_one_is_tried_and_sixteen_are_enough(
    ask: Ask | None,
) -> None:
    walk = KeyWalk(RING, ask=ask)
    for number in range(1, 16):
        walk.leave()
        assert (walk.generation, walk.is_fresh) == (number, False)
    with pytest.raises(ResourceError, match="16 requests of this kind within seven days are used up"):
        walk.leave()


def test_a_service_that_answers_every_key_with_a_conflict_is_not_asked_for_ever() -> None:
    asked: list[str] = []

    def ask(id: int, key: str) -> None:
        asked.append(key)
        raise refusal(409, "idempotency_conflict")

    walk = KeyWalk(RING, ask=ask)
    with pytest.raises(ResourceError, match="200 keys in a row are bound to other requests"):
        walk.leave()
    assert len(set(asked)) == len(asked) == 200


def test_what_is_no_answer_ends_the_walk() -> None:
    def ask(id: int, key: str) -> None:
        raise ConnectionError

    walk = KeyWalk(RING, ask=ask)
    step: Callable[[], object]
    for step in (walk.leave, walk.leave_if_used):
        with pytest.raises(ConnectionError):
            step()
