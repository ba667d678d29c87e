"""One run of certify on one deployment, and its result."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal

from pulumi_hosting.certify import Conformance, RunSettings, WebhookDelivery, run
from tests.certify.deployment import BASE_URL, RECEIVER, Deployment, allowed
from tests.certify.judge import Departures, judge
from tests.certify.mutants import MUTANTS, together

SPEND = Decimal("40.00")
DOMAIN = "certify-example.com"
MOST_SECONDS = 120
"""Of a run, on this machine's clock: a mutant may make it walk in circles."""


@dataclass
class _Receiver:
    url: str = f"{RECEIVER}/hooks"
    answer: int = 200
    received: list[WebhookDelivery] = field(default_factory=list)

    def deliveries(self) -> list[WebhookDelivery]:
        return list(self.received)

    def receive(self, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        self.received.append(WebhookDelivery({name.lower(): text for name, text in headers.items()}, body))
        return self.answer, b"." * 1500


def report(deployment: Deployment) -> Conformance:
    """The report of a run with all that it can be given."""
    receiver = _Receiver()
    deployment.deliver_to(receiver.receive)
    return run(
        RunSettings(
            base_url=BASE_URL,
            test_key=deployment.test_key,
            live_key=deployment.live_key,
            narrow_key=deployment.narrow_key,
            spend=SPEND,
            domain=DOMAIN,
            receiver=receiver,
            transport=deployment.transport,
            clock=deployment,
        )
    )


def _departures(deployment: Deployment) -> Departures:
    made, found = report(deployment), dict[str, tuple[str, ...]]()
    for one in made.departures:
        found[one.check] = (*found.get(one.check, ()), *one.sentences)
    if made.unfinished and not found:
        raise RuntimeError("it did not finish and names nothing")
    return found


@dataclass(frozen=True)
class Outcome:
    """``names``: the mutants of a run, or the choices of one without. ``stopped``: why it did not finish."""

    names: tuple[str, ...]
    missed: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    stopped: str = ""


@contextmanager
def _in_time() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {MOST_SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(MOST_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def of_mutants(names: tuple[str, ...]) -> Outcome:
    """A run on a deployment with these mutants."""
    mutants = tuple(MUTANTS[name] for name in names)
    try:
        with together(mutants).change(), _in_time():
            verdict = judge(mutants, _departures(Deployment()))
    except Exception as error:  # noqa: BLE001  # whatever stops a run, the mutant was not found
        return Outcome(names, missed=names, stopped=f"{type(error).__name__}: {error}")
    return Outcome(names, verdict.missed, verdict.wrong)


def of_choices(seed: int) -> Outcome:
    """A run on a deployment that departs nowhere."""
    deployment, change, names = allowed(seed)
    try:
        with change(), _in_time():
            return Outcome((f"seed {seed}", *names), wrong=tuple(_departures(deployment)))
    except Exception as error:  # noqa: BLE001  # named, and the proof fails
        return Outcome(
            (f"seed {seed}", *names), wrong=("stopped",), stopped=f"{type(error).__name__}: {error}"
        )
