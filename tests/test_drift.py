"""The changes that resources declare are calls that the emulator's control interface accepts."""

import json
import urllib.error
from typing import Any

import pytest

from pulumi_hosting.offline.model.property_values import SIGNATURE
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.drift_changes import Managed
from pulumi_hosting.resources import RESOURCES


def managed(kind: str) -> Managed:
    """A resource whose object does not exist."""
    declaration = RESOURCES[kind]
    id = "1/2" if declaration.control_path.count("{}") == 2 else "1"
    return Managed(
        declaration,
        {
            "urn": "urn:pulumi:dev::p::t::it",
            "id": id,
            "inputs": {},
            "outputs": {"__managed": [*declaration.Inputs.model_fields]},
        },
    )


def refusal(call: Any) -> tuple[int, str]:
    with pytest.raises(urllib.error.HTTPError) as refused:
        call()
    return refused.value.code, json.loads(refused.value.read())["error"]


@pytest.mark.parametrize("kind", RESOURCES)
def test_declared_changes_are_control_calls(kind: str, emulator: Any) -> None:
    """Bodies are validated before objects are looked up: the only error is that the object is missing."""
    resource, control = managed(kind), Control(emulator.control_url)
    calls = [lambda field=field: resource.change(control, field) for field in resource.fields()]
    for call in (*calls, lambda: resource.delete(control)):
        code, reason = refusal(call)
        assert (code, reason.startswith("there is no ")) == (404, True), reason
    assert refusal(lambda: control("PATCH", resource.path, {"nonsense": 1}))[0] == 400
    assert resource.fields() or kind == "server_ip"  # an address can only be deleted


def test_only_managed_fields_are_changed_and_those_that_replace_come_last() -> None:
    resource = managed("server")
    assert resource.fields()[-1] == "os"
    hook = managed("webhook_subscription")
    assert hook.fields() == ["url", "events", "description", "active"]
    hook.resource["inputs"]["url"] = {SIGNATURE: "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:x"}
    assert hook.fields() == ["events", "description", "active"]
    resource.resource["outputs"]["__managed"] = ["os", "power"]
    assert resource.fields() == ["power", "os"]
    resource.resource["inputs"]["rebuild"] = "forbid"  # the program refuses a repair
    assert resource.fields() == ["power"]
