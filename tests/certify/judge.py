"""Whether a run named what is wrong with a deployment, and nothing else."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from tests.certify.mutants.change import DOCUMENT, Mutant

TEXT = " ".join(DOCUMENT.split())

Departures = Mapping[str, Iterable[str]]
"""The checks of a run that found a departure: their ids and the sentences that they quote."""


@cache
def places(sentence: str) -> tuple[range, ...]:
    """Where the document has the sentence. Raises ``ValueError`` if it has not."""
    quoted = " ".join(sentence.split())
    found, at = [], TEXT.find(quoted)
    while at >= 0:
        found.append(range(at, at + len(quoted)))
        at = TEXT.find(quoted, at + 1)
    if not found:
        raise ValueError(f"the document does not have: {sentence}")
    return tuple(found)


def related(some: Iterable[str], others: Iterable[str]) -> bool:
    """Whether two sets of quotations share words of the document."""
    mine = [place for sentence in some for place in places(sentence)]
    return any(
        a.start < b.stop and b.start < a.stop for sentence in others for a in places(sentence) for b in mine
    )


@dataclass(frozen=True)
class Verdict:
    """``missed``: mutants that no check named; ``wrong``: checks that named what is not wrong."""

    missed: tuple[str, ...]
    wrong: tuple[str, ...]


def judge(mutants: Iterable[Mutant], departures: Departures) -> Verdict:
    """Each mutant must be found by a check of a sentence that it breaks, and by no other."""
    mutants = tuple(mutants)
    return Verdict(
        missed=tuple(
            one.id for one in mutants if not any(related(one.sentences, s) for s in departures.values())
        ),
        wrong=tuple(
            id
            for id, sentences in departures.items()
            if not any(related(one.sentences, sentences) for one in mutants)
        ),
    )
