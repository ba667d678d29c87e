"""What is paid until when, as metrics for Prometheus: the numbers of ``renewals``, on the day of a scrape.

The account is read when it is scraped. Each name, unit and label is one that docs/exporter.md lists. What the
key may not read has no value, never 0.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from pulumi_hosting.api.secrets import clean_text, without_tokens
from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.planning.paid_time import PaidTime
from pulumi_hosting.session.prepaid import Prepaid

_OBJECT = ("kind", "id", "name")
_Samples = Iterable[tuple[tuple[str, ...], float | Decimal]]


@dataclass(eq=False)
class PaidTimeCollector(Collector):
    """The metrics of one account. A scrape reads it at most once per ``interval`` seconds; when a read fails,
    the values of the last good one stay.

    - ``read``: asks the account; ``warn`` is called with the reason when it fails.
    - ``longest_wait``: of a scrape for a read, in seconds. A read that takes longer goes on, and a later
      scrape has its values.
    - ``monotonic``: the time for intervals and ages, in seconds.
    """

    read: Callable[[], PaidTime]
    warn: Callable[[str], None]
    interval: float
    longest_wait: float = 5.0
    monotonic: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _reading: threading.Thread | None = field(default=None, init=False)
    _begun: float = field(default=0.0, init=False)
    _has_failed: bool | None = field(default=None, init=False)  # None: no read has ended yet
    _good: tuple[PaidTime, float] | None = field(default=None, init=False)  # the last one, and when it ended

    def collect(self) -> Iterator[Metric]:
        """Called for each scrape."""
        self._read_if_due().join(self.longest_wait)
        if self._has_failed is not None:
            meaning = "1: the last read of the account failed; the values are those of the last good one."
            yield _gauge("last_read_failed", meaning, [((), self._has_failed)])
        if self._good is not None:
            paid, at = self._good
            age = self.monotonic() - at
            yield _gauge("last_good_read_age_seconds", "Age of the values.", [((), age)])
            yield from metrics(paid, age)

    def _read_if_due(self) -> threading.Thread:
        """The latest read, which may have ended long ago."""
        with self._lock:
            now, reading = self.monotonic(), self._reading
            if reading is None or (not reading.is_alive() and now - self._begun >= self.interval):
                self._begun = now
                reading = self._reading = threading.Thread(target=self._read, daemon=True)
                reading.start()
            return reading

    def _read(self) -> None:
        has_failed = True
        try:
            paid = self.read()
            if paid.failed:
                self.warn(f"the account was not read: {paid.refused[paid.failed[0]]}")
            else:
                self._good, has_failed = (paid, self.monotonic()), False
        except HostingError as error:
            self.warn(f"the account was not read: {error}")
        finally:
            self._has_failed = has_failed


def metrics(paid: PaidTime, age: float) -> Iterator[Metric]:
    """The metrics of what an account showed ``age`` seconds ago."""
    if paid.balance is not None:
        labels = (paid.currency or "",)
        yield _gauge("balance", "Money on the account.", [(labels, paid.balance)], ("currency",))
    if paid.first_short is not None and paid.first_short.at is not None:
        meaning = "Time until the first renewal that the balance does not cover; absent if it covers all."
        runway = paid.first_short.at - paid.now - timedelta(seconds=age)
        yield _gauge("runway_seconds", meaning, [((), runway.total_seconds())])
    meaning = "1: this part of the account was not read completely."
    yield _gauge("not_read", meaning, [((part,), 1) for part in paid.refused], ("part",))
    yield from _of_objects(paid)


def _of_objects(paid: PaidTime) -> Iterator[Metric]:
    meaning = "When the paid time of an object ends; of an invoice, until when it is to be paid."
    ends = [(_labels(what), what.safe_until.timestamp()) for what in paid.objects if what.safe_until]
    yield _gauge("paid_until_timestamp_seconds", meaning, ends, _OBJECT)
    meaning = "1: the service renews the object from the balance."
    renews = [(_labels(what), what.renews) for what in paid.objects if what.kind != "invoice"]
    yield _gauge("auto_renew", meaning, renews, _OBJECT)
    meaning = "1: it renews itself next, and the balance covers that; 0: it ends with its paid time."
    yield _gauge("covered", meaning, _covered(paid), _OBJECT)
    meaning = "1: the object is suspended or expired, or its cancellation is approved."
    ended = [((*_labels(what), what.ended), 1) for what in paid.objects if what.ended]
    yield _gauge("ended", meaning, ended, (*_OBJECT, "status"))


def _covered(paid: PaidTime) -> _Samples:
    """Of each object that has not ended, whether what is due next is covered, if that is known."""
    first = {event.what.key: event for event in reversed(paid.events)}
    for what in paid.objects:
        event = first.get(what.key)
        if event is None or what.ended:
            continue
        if event.kind != "renewed" or (paid.balance is not None and what.amount is not None):
            yield _labels(what), event.kind == "renewed"


def _labels(what: Prepaid) -> tuple[str, ...]:
    return what.kind, what.id, without_tokens(clean_text(what.name, 200))


def _gauge(name: str, meaning: str, samples: _Samples, labels: tuple[str, ...] = ()) -> Metric:
    family = GaugeMetricFamily(f"hosting_{name}", meaning, labels=labels)
    for values, number in samples:
        family.add_metric(values, float(number))
    return family
