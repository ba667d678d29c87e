"""Answers of every operation over a connection that breaks, or with bytes that are no such answer, and what
the client makes of them."""

import logging
import sys
import traceback
from typing import Any

from pulumi_hosting.client.exceptions import HostingError, NotFound, TransportError
from pulumi_hosting.client.results import File
from tests.client.broken_network import HOST, LONGEST_CALL, MOST_READS, PORT, Network, client_on, in_time_of
from tests.client.faults import ERROR, FAULTS, NOTHING, SAME, Fault
from tests.client.fuzz import LONGEST_EXCHANGE, Answer, answers, plain
from tests.client.support import KEY, FakeTime
from tests.client.test_retries import call


def problem(answer: Answer, fault: Fault, intact: Any) -> str | None:
    """What is wrong with what the client makes of this answer after this fault."""
    time = FakeTime()
    network = Network(time, lambda request: fault.send(answer, request), fault.connecting, fault.writing)
    began = time.now
    log = _Log()
    with in_time_of(network), client_on(network) as client, log:
        try:
            found = plain(call(client, answer.operation))
            wrong = _wrong_result(answer, fault, found, intact)
        except HostingError as error:
            wrong = _wrong_error(answer, fault, error) or log.wrong()
        except Exception as error:  # noqa: BLE001  # that is what is looked for
            wrong = f"{type(error).__name__}: {error}"
    wrong = wrong or _wrong_exchange(answer, fault, network, time.now - began)
    return wrong and f"{answer.operation.id} {answer.status}, {fault.name}: {wrong}"


def _wrong_result(answer: Answer, fault: Fault, found: Any, intact: Any) -> str | None:
    if fault.expected == NOTHING:
        is_empty = not isinstance(found, list) and all(value is None for value in (found or {}).values())
        return None if is_empty else f"{found!r:.80} was read from no body"
    if fault.expected == ERROR:
        return f"taken for an answer: {found!r:.80}"
    if isinstance(found, File) and found.startswith(intact):
        return None  # a file may have more behind its end
    return None if found == intact else f"{found!r:.80} instead of {intact!r:.80}"


def _wrong_error(answer: Answer, fault: Fault, error: HostingError) -> str | None:
    if fault.expected == SAME:
        return f"{type(error).__name__}: {error}"
    if isinstance(error, NotFound) and fault.name == "page with 404":
        return "a page shows that the object is gone"
    shown_texts = (str(error), repr(error), repr(vars(error)), "".join(traceback.format_exception(error)))
    secrets = {KEY, *_secrets(answer)}
    if any(secret in text for text in shown_texts for secret in secrets):
        return f"a secret in {type(error).__name__}: {error}"
    if answer.operation.is_write and fault.is_lost and not getattr(error, "outcome_unknown", False):
        return f"{type(error).__name__} hides that the write may have been carried out"
    if fault.connecting is not None and not (isinstance(error, TransportError) and not error.outcome_unknown):
        return f"{type(error).__name__} hides that nothing was sent"
    return None


def _wrong_exchange(answer: Answer, fault: Fault, network: Network, seconds: float) -> str | None:
    sent = len(network.requests)
    if seconds > LONGEST_CALL or sent > LONGEST_EXCHANGE or network.reads > MOST_READS:
        return f"it takes {seconds:.0f} s, {sent} requests and {network.reads} reads"
    if network.places != {(HOST, PORT)}:
        return f"it goes to {network.places}"
    is_told_to_wait = fault.name.startswith(("429", "page with 429"))
    if answer.operation.retry not in ("safe", "idempotency_key") and sent > 1 and not is_told_to_wait:
        return f"a write without a key was sent {sent} times"
    return None


def _secrets(answer: Answer) -> set[str]:
    body = answer.body if isinstance(answer.body, dict) else {}
    return {str(body[name]) for name in answer.operation.once if body.get(name)}


class _Log(logging.Handler):
    """What the client logs."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []
        self._logger = logging.getLogger("pulumi_hosting")

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())

    def wrong(self) -> str | None:
        return next((f"a secret in the log: {line}" for line in self._lines if KEY in line), None)

    def __enter__(self) -> "_Log":
        self._level = self._logger.level
        self._logger.setLevel(logging.DEBUG)
        self._logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)


def problems(every: int = 1) -> tuple[int, list[str]]:
    """How many answers were tried with how many faults, and what is wrong. ``every``: only each so many."""
    tried, found = 0, []
    for number, answer in enumerate(answers()):
        (same,) = (fault for fault in FAULTS if fault.name == "a slow answer")
        intact = _intact(answer, same)
        for place, fault in enumerate(FAULTS):
            if (number + place) % every == 0:
                tried += 1
                if wrong := problem(answer, fault, intact):
                    found.append(wrong)
    return tried, found


def _intact(answer: Answer, fault: Fault) -> Any:
    network = Network(FakeTime(), lambda request: fault.send(answer, request))
    with in_time_of(network), client_on(network) as client:
        return plain(call(client, answer.operation))


def main() -> int:
    """Try every answer with every fault. Exit 1 where one goes wrong."""
    tried, wrong = problems()
    print(*wrong, sep="\n")
    operations = {answer.operation.id for answer in answers()}
    print(
        f"{tried} broken exchanges of {len(operations)} operations, {len(FAULTS)} faults: {len(wrong)} wrong"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
