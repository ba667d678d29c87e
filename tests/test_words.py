"""The list of private words finds them in prose and in names, and nothing else."""

import pytest

from tools.words import findings


@pytest.mark.parametrize(
    "line",
    [
        "every noun of it",
        "class NounError:",
        "noun_modules = 1",
        "WISHES",
        "What nobody's key is",
        "it renews by itself",
    ],
)
def test_a_private_word_is_found(line: str) -> None:
    assert [number for number, _, _ in findings(f"plain\n{line}\n")] == [2]


@pytest.mark.parametrize(
    "line", ["a pronoun", "announce", "every resource", "noun  # words: quoted from a message of Pulumi"]
)
def test_other_words_are_not(line: str) -> None:
    assert not list(findings(line))
