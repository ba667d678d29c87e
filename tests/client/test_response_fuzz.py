"""A sample of the damaged answers; ``make prove`` tries all of them."""

from pulumi_hosting.api.operations import OPERATIONS
from tests.client.fuzz import answers, problems

EVERY = 12
"""So many damaged answers are one in the sample."""


def test_a_damaged_answer_is_an_error_of_ours_or_tells_no_lie() -> None:
    tried, wrong = problems(EVERY)
    assert wrong == []
    assert tried > 500


def test_every_operation_is_damaged() -> None:
    assert {row.id for row in OPERATIONS} == {answer.operation.id for answer in answers()}
