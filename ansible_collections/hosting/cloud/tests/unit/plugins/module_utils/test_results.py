# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# ruff: noqa: S101 — assert is how pytest asks
"""Inputs, differences and failures of results, with the resources, outcomes and errors of
``pulumi_hosting``."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from ansible_collections.hosting.cloud.plugins.module_utils import failures, module, resource_module, version
from ansible_collections.hosting.cloud.plugins.module_utils.run_memory import ProcessStorage, RunMemory
from ansible_collections.hosting.cloud.plugins.module_utils.task import ModuleTask
from pulumi_hosting.client.exceptions import InvalidInput, TransportError, ValidationFailed
from pulumi_hosting.planning.apply import Outcome
from pulumi_hosting.planning.diff import Diff, FieldChange
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.session.errors import (
    AmbiguousMatch,
    KeyLacksScope,
    LimitExceeded,
    NoSuchObject,
    ResourceConflict,
    ResourceError,
    Unchangeable,
    WaitTimeout,
    WrongMode,
)

SERVER = RESOURCES["server"]
MODULE = resource_module.ResourceModule("server", {}, clears={"notes": ""})


def mentioned(**params: Any) -> dict[str, Any]:
    every = dict.fromkeys(SERVER.Inputs.model_fields)
    memory = RunMemory(ProcessStorage(), account=lambda: "one")
    task = ModuleTask({**every, **params}, frozenset(params), check_mode=False, diff=False, memory=memory)
    return {**task.given, **MODULE.implied(task)}


def test_not_given_and_null_are_two_things() -> None:
    assert mentioned(name="web-1") == {"name": "web-1"}
    assert mentioned(name="web-1", notes=None) == {"name": "web-1", "notes": ""}


def test_a_null_that_cannot_empty_anything_leaves_it_out() -> None:
    assert mentioned(name="web-1", auto_renew=None, password=None) == {"name": "web-1"}


def test_one_shape_without_secrets() -> None:
    shaped = module.shown_fields(
        SERVER.State, {"name": "web-1", "root_password": "hidden", "password": "hidden"}
    )
    assert shaped["name"] == "web-1"
    assert shaped["id"] is None
    assert "hidden" not in shaped.values()
    assert list(shaped) == [
        name for name in SERVER.State.model_fields if name not in ("root_password", "password")
    ]


def test_diff_of_a_creation_is_what_was_mentioned_but_no_secret() -> None:
    given = {"tariff_id": 1, "name": "web-1", "password": "hidden"}
    assert resource_module.difference(SERVER, given, Outcome("created", None, {"id": "1"}, None)) == {
        "before": {},
        "after": {"name": "web-1", "tariff_id": 1},
    }


def test_diff_of_a_takeover_shows_what_it_changes() -> None:
    there = {"id": "7", "name": "by-hand", "tariff_id": 1, "notes": None, "root_password": "hidden"}
    given = {"adopt_id": "7", "name": "web-1", "tariff_id": 1, "notes": "new", "password": "hidden"}
    assert resource_module.difference(SERVER, given, Outcome("created", there, {"id": "7"}, None)) == {
        "before": {"name": "by-hand", "tariff_id": 1},
        "after": {"adopt_id": "7", "name": "web-1", "notes": "new", "tariff_id": 1},
    }


def test_diff_of_an_update_shows_what_was_mentioned_in_one_order() -> None:
    found = Diff((FieldChange("notes", "old", "new", False), FieldChange("auto_renew", True, False, False)))
    outcome = Outcome(
        "updated",
        {"id": "1", "name": "web-1", "os": "debian-12", "notes": "old", "auto_renew": True},
        {},
        None,
        found,
    )
    shown = resource_module.difference(
        SERVER,
        {"notes": "new", "name": "web-1", "auto_renew": False, "ssh_key_ids": ["1"], "months": 1},
        outcome,
    )
    assert shown == {
        "before": {"auto_renew": True, "name": "web-1", "notes": "old"},
        "after": {"auto_renew": False, "name": "web-1", "notes": "new"},
    }
    assert list(shown["after"]) == sorted(shown["after"])


def test_diff_never_shows_a_secret_that_differs() -> None:
    outcome = Outcome(
        "updated", {"name": "web-1"}, {}, None, Diff((FieldChange("password", "(secret)", "(secret)", True),))
    )
    assert "password" not in str(resource_module.difference(SERVER, {"password": "hidden"}, outcome))


def test_diff_of_a_deletion_shows_what_goes() -> None:
    shown = resource_module.difference(
        SERVER, {"name": "web-1"}, Outcome("deleted", {"id": "1", "name": "web-1"}, None, None)
    )
    assert shown["after"] == {}
    assert shown["before"]["id"] == "1"


def test_an_error_of_the_service_is_facts() -> None:
    error = ValidationFailed(
        status=400,
        code="validation_error",
        message="two\nlines",
        request_id="req-1",
        details={"fields": {"name": "too long"}},
    )
    refusal = failures.failure_of(error)
    assert refusal["failure"] == {
        "code": "validation_error",
        "status": 400,
        "request_id": "req-1",
        "fields": {"name": "too long"},
        "outcome_unknown": False,
        "idempotency_key": None,
    }
    assert "\n" not in refusal["msg"]
    assert "req-1" in refusal["msg"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput({"name": "is required"}), "invalid_input"),
        (AmbiguousMatch("the name", ["1", "2"]), "ambiguous_match"),
        (ResourceError("no"), "refused"),
        (LimitExceeded("too much"), "max_charge"),
        (NoSuchObject("nothing there"), "not_found"),
        (WrongMode("a test key"), "wrong_mode"),
        (Unchangeable("another tariff"), "unchangeable"),
        (KeyLacksScope("servers:order"), "insufficient_scope"),
        (ResourceConflict("not ours", "7"), "resource_conflict"),
        (WaitTimeout("still provisioning", "order:7"), "wait_timeout"),
        (TransportError("no answer", outcome_unknown=True), "transport_error"),
    ],
)
def test_a_stop_before_or_after_the_service_has_a_code_too(error: Exception, code: str) -> None:
    assert failures.failure_of(error)["failure"]["code"] == code


def test_a_defect_says_where_and_not_what() -> None:
    with pytest.raises(KeyError) as caught:
        raise KeyError("a secret")
    refusal = failures.failed(caught.value)
    assert refusal["failure"]["code"] == "defect"
    assert "KeyError in test_results.py:" in refusal["msg"]
    assert "a secret" not in str(refusal)


def test_an_old_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 1))
    refusal = failures.unusable()
    assert refusal is not None
    assert sys.executable in refusal["msg"]
    assert "ansible_python_interpreter" in refusal["msg"]


def test_an_old_core_is_named_with_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "CORE", "999.0.0")
    refusal = failures.unusable()
    assert refusal is not None
    assert "pulumi-hosting >= 999.0.0" in refusal["msg"]
    assert f"by hosting.cloud {version.VERSION}; version " in refusal["msg"]
    assert sys.executable in refusal["msg"]
    assert "\n" not in refusal["msg"]


def test_versions_are_compared_as_numbers() -> None:
    assert failures._numbers("0.10.0") > failures._numbers("0.9.9")
    assert failures._numbers("1.2.3rc1") == (1, 2, 3)
