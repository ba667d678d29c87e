# Copyright: (c) 2026, the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# ruff: noqa: S101 — assert is how pytest asks
"""The event source by its parts: what it forgets, what it says, and where it keeps things. No network."""

import logging
from pathlib import Path

import pytest

from ansible_collections.hosting.cloud.extensions.eda.plugins.event_source.webhook import (
    REMEMBER_SECONDS,
    Complaints,
    Options,
    Secrets,
    Store,
)

DAY = 86400


def test_what_was_handed_over_is_forgotten_a_month_after_it_was_last_seen(tmp_path: Path) -> None:
    assert REMEMBER_SECONDS >= 31 * DAY
    now = [1_800_000_000.0]
    store = Store(tmp_path / "events.sqlite", now=lambda: now[0])
    for id in ("evt_1", "evt_2", "evt_3"):
        assert store.add(id, b"{}", {}, "delivery")
    store.done("evt_1")
    store.done("evt_2")
    now[0] += 20 * DAY
    assert not store.add("evt_2", b"{}", {}, "delivery")  # sent again by hand: its month begins anew
    now[0] += 20 * DAY
    store.tidy()
    assert [store.knows(id) for id in ("evt_1", "evt_2", "evt_3")] == [False, True, True]
    waiting = store.after(0)
    assert waiting is not None
    assert waiting.id == "evt_3"  # what the rules never had is not forgotten
    now[0] += 12 * DAY
    store.tidy()
    assert [store.knows(id) for id in ("evt_2", "evt_3")] == [False, True]
    assert store.born == 1_800_000_000.0
    store.close()


def test_numbers_are_not_used_again(tmp_path: Path) -> None:
    """The order of handing over is that of receiving, also after the newest event has been forgotten."""
    now = [0.0]
    store = Store(tmp_path / "events.sqlite", now=lambda: now[0])
    store.add("evt_1", b"{}", {}, "delivery")
    first = store.after(0)
    store.done("evt_1")
    now[0] += 32 * DAY
    store.tidy()
    store.add("evt_2", b"{}", {}, "delivery")
    second = store.after(0)
    assert first is not None
    assert second is not None
    assert second.number > first.number
    store.close()


def test_a_file_that_was_open_to_all_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "events.sqlite"
    path.touch(0o644)
    Store(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_strangers_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    complaints = Complaints(clock=lambda: now[0])
    for moment in (0, 1, 59, 61, 62, 200):
        now[0] = 100.0 + moment
        with caplog.at_level(logging.WARNING):
            complaints.say(f"refused at {moment}")
    assert [record.getMessage() for record in caplog.records] == [
        "refused at 0",
        "refused at 61 (and 2 more since the last line)",
        "refused at 200 (and 1 more since the last line)",
    ]


def test_where_events_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert Options.of({"port": "5000"}).state_path == tmp_path / ".local/state/hosting/webhook-5000.sqlite"
    monkeypatch.setenv("XDG_STATE_HOME", "/var/lib")
    assert Options.of({"port": 5000}).state_path == Path("/var/lib/hosting/webhook-5000.sqlite")
    assert Options.of({"port": 5000, "state_file": "~/kept"}).state_path == tmp_path / "kept"


def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTING_WEBHOOK_SECRET", "whsec_one,whsec_two")
    options = Options.of({"port": 1, "secret": "whsec_three", "api_key": "vk_live_abcdefghijkl"})
    assert [secret.reveal() for secret in Secrets.of(options).current()] == ["whsec_three"]
    assert [secret.reveal() for secret in Secrets.of(Options.of({"port": 1})).current()] == ["whsec_one", "whsec_two"]
    assert "whsec" not in repr(options) + repr(Secrets.of(options))
    assert "vk_live" not in repr(options)
