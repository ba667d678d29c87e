"""Check and diff: pure reasoning about any resource."""

from typing import Any

import pytest

from pulumi_hosting.api.values import fingerprint
from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.exactly_once.ownership_tag import split_tag, with_tag
from pulumi_hosting.planning.check import check
from pulumi_hosting.planning.diff import diff
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.resources.ssh_key import SSH_KEY

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKc4kOLbLqVvPsC6XnV2CGzW0fBsq1DQzR1H4VqT5gkE me@host"
GOOD: dict[str, Any] = {"tariff_id": 1, "os": "debian-12", "name": "web-1"}
CANARY = "cAnary!1"


def failures(raw: dict[str, Any], unknown: set[str] | None = None) -> dict[str, str]:
    return dict(check(SERVER, raw, unknown or ()).failures)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"tariff_id": None}, "tariff_id"),
        ({"tariff_id": 0}, "tariff_id"),
        ({"tariff_id": 1.5}, "tariff_id"),
        ({"tariff_id": True}, "tariff_id"),
        ({"os": ""}, "os"),
        ({"name": "not\na name"}, "name"),
        ({"name": "web\n"}, "name"),
        ({"months": 2}, "months"),
        ({"months": 3, "hours": 1}, "hours"),
        ({"hours": 0}, "hours"),
        ({"hours": 721}, "hours"),
        ({"hours": 1, "billing_cycle": "monthly"}, "hours"),
        ({"months": 1, "billing_cycle": "hourly"}, "months"),
        ({"billing_cycle": "weekly"}, "billing_cycle"),
        ({"ssh_key_ids": ["x"]}, "ssh_key_ids"),
        ({"ssh_key_ids": [0]}, "ssh_key_ids"),
        ({"password": "short"}, "password"),
        ({"password": "onlyletters"}, "password"),
        ({"password": "with space 1"}, "password"),
        ({"promo_code": "x" * 65}, "promo_code"),
        ({"custom_fields": {str(n): "x" for n in range(31)}}, "custom_fields"),
        ({"auto_renew": "yes"}, "auto_renew"),
        ({"notes": "mine [iac:aaaaaaaa]"}, "notes"),
        ({"adopt_id": "web"}, "adopt_id"),
        ({"order_attempt": -1}, "order_attempt"),
        ({"colour": "red"}, "colour"),
        # What the API would refuse once the order is paid.
        ({"notes": "x" * 70000}, "notes"),
        ({"notes": "ä" * 40000}, "notes"),
        ({"notes": "a\ud800"}, "notes"),
        ({"custom_fields": {str(n): "x" * 3000 for n in range(30)}}, "custom_fields"),
        ({"custom_fields": {"a": "a\ud800"}}, "custom_fields"),
        ({"os": "debian\ud800"}, "os"),
        ({"months": True}, "months"),
        ({"order_attempt": True}, "order_attempt"),
        ({"tariff_id": "1.0"}, "tariff_id"),
        ({"tariff_id": "one"}, "tariff_id"),
        ({"tariff_id": "٣"}, "tariff_id"),
    ],
)
def test_bad_inputs_are_refused_by_name(change: dict[str, Any], field: str) -> None:
    assert field in failures({**GOOD, **change})


def test_numbers_may_be_written_as_digits() -> None:
    written = {"tariff_id": "1", "months": "3", "order_attempt": "2", "ssh_key_ids": [5, "6"]}
    read = {"tariff_id": 1, "months": 3, "order_attempt": 2, "ssh_key_ids": ["5", "6"]}
    assert check(SERVER, {**GOOD, **written}).values == {**GOOD, **read}


def test_notes_of_any_length_that_fits_leave_room_for_the_tag() -> None:
    assert not failures({**GOOD, "notes": "x" * 60000})


def test_a_required_field_that_is_absent_is_named() -> None:
    assert failures({"name": "web-1"}) == {
        "tariff_id": "is required, unless tariff names it",
        "os": "is required",
    }


def test_what_was_checked_does_not_show_its_secrets() -> None:
    given = {"tariff_id": 1, "os": "debian-12", "name": "web", "password": CANARY}
    good = check(SERVER, given)
    assert good.values["password"] == CANARY
    bad = check(SERVER, {**given, "name": "no\ngood name"})
    assert bad.failures
    assert CANARY not in f"{good!r} {bad!r}"


def test_a_refused_secret_is_not_repeated() -> None:
    found = failures({**GOOD, "password": CANARY + " "})
    assert list(found) == ["password"]
    assert CANARY not in str(found)


def test_unknown_fields_are_not_checked_but_the_others_are() -> None:
    assert failures({"name": "web-1", "os": "debian-12"}, {"tariff_id"}) == {}
    assert list(failures({"name": "bad\nname", "os": "debian-12"}, {"tariff_id"})) == ["name"]
    assert list(failures(GOOD, {"colour"})) == ["colour"]


def test_normal_form_is_a_fixed_point() -> None:
    once = check(SERVER, {**GOOD, "tariff_id": 1.0, "ssh_key_ids": [10, "9", 10.0], "notes": "x  "}).values
    assert once["ssh_key_ids"] == ["9", "10"]
    assert once["tariff_id"] == 1
    assert once["notes"] == "x"
    assert check(SERVER, once).values == once


def test_only_what_is_declared_is_compared() -> None:
    olds = {**GOOD, "notes": "by hand", "auto_renew": True, "id": "1"}
    assert not diff(SERVER, olds, GOOD)
    assert diff(SERVER, olds, {**GOOD, "notes": "mine"}).fields == {"notes"}


@pytest.mark.parametrize(
    ("field", "value"), [("tariff_id", 2), ("os", "debian-11"), ("billing_cycle", "hourly")]
)
def test_what_cannot_change_in_place_replaces(field: str, value: Any) -> None:
    olds = {**GOOD, "billing_cycle": "monthly", "ssh_key_ids": ["5"]}
    found = diff(SERVER, olds, {**GOOD, field: value})
    assert found.replaces == (field,)


KEYS_AND_PASSWORD = {"ssh_key_ids": (["5"], ["7"]), "password": (CANARY, CANARY + "2")}


@pytest.mark.parametrize("field", KEYS_AND_PASSWORD)
def test_changed_keys_and_passwords_rebuild_a_server_on_request_only(field: str) -> None:
    before, after = KEYS_AND_PASSWORD[field]
    olds, news = {**GOOD, field: before}, {**GOOD, field: after}
    found = diff(SERVER, olds, news)
    assert not found
    (remark,) = found.remarks
    assert remark.startswith(
        f"{field} has changed and is installed only when a server is made: the change has no effect. Next: "
    )
    assert diff(SERVER, olds, {**news, "rebuild": "replace"}).replaces == (field,)
    reinstalled = diff(SERVER, olds, {**news, "rebuild": "reinstall"})
    assert reinstalled.fields == {field}
    assert not reinstalled.replaces
    assert diff(SERVER, olds, {**news, "rebuild": "forbid"}).refusals == (field,)
    replaced = diff(SERVER, olds, {**news, "os": "debian-11"})
    assert replaced.replaces == ("os",)
    assert not replaced.remarks  # the new server has the new ones
    assert CANARY not in f"{found} {reinstalled} {replaced}"


def test_what_cannot_be_observed_and_was_never_recorded_is_not_compared() -> None:
    assert not diff(SERVER, GOOD, {**GOOD, "password": CANARY, "ssh_key_ids": ["1"]})


def test_the_order_of_a_set_is_no_difference() -> None:
    assert not diff(SERVER, {**GOOD, "ssh_key_ids": ["2", "1"]}, {**GOOD, "ssh_key_ids": ["1", "2"]})


def test_what_matters_when_ordering_only_has_no_effect_later_and_says_so() -> None:
    found = diff(SERVER, {**GOOD, "months": 1}, {**GOOD, "months": 12})
    assert not found
    assert found.remarks == ("months is create-only; change ignored",)
    replaced = diff(SERVER, {**GOOD, "months": 1}, {**GOOD, "months": 12, "tariff_id": 2})
    assert (replaced.replaces, replaced.remarks) == (("tariff_id",), ())  # the new one is paid for 12


def test_an_unknown_value_may_be_a_change() -> None:
    olds = {**GOOD, "ssh_key_ids": ["1"]}
    assert diff(SERVER, olds, {**GOOD, "rebuild": "replace"}, {"ssh_key_ids"}).replaces == ("ssh_key_ids",)
    assert not diff(SERVER, olds, GOOD, {"ssh_key_ids"})
    assert diff(SERVER, olds, GOOD, {"os"}).replaces == ("os",)


def test_every_resource_says_what_it_needs() -> None:
    for resource in RESOURCES.values():
        assert set(resource.scopes) == {"read", "create", "update", "delete"}
        for model in (resource.Inputs, resource.State):
            missing = [name for name, info in model.model_fields.items() if not info.description]
            assert not missing, f"{model.__name__}: {missing} have no description"


# --- SSH keys


def test_a_private_key_is_refused_and_not_repeated() -> None:
    private = (
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----"
    )
    found = check(SSH_KEY, {"name": "me", "public_key": private}).failures
    assert list(found) == ["public_key"]
    assert "b3BlbnNzaC1rZXktdjEAAAAA" not in str(found)


@pytest.mark.parametrize(
    "line", ["", "ssh-ed25519", "ssh-ed25519 not*base64", "ssh-ed448 AAAA", KEY + "\n" + KEY]
)
def test_what_is_no_public_key_line_is_refused(line: str) -> None:
    assert list(check(SSH_KEY, {"name": "me", "public_key": line}).failures) == ["public_key"]


def test_spacing_of_a_key_is_no_difference() -> None:
    one = check(SSH_KEY, {"name": "me", "public_key": KEY}).values
    other = check(SSH_KEY, {"name": "me", "public_key": f"  {KEY.replace(' ', '   ')}\n"}).values
    assert one == other


def test_the_fingerprint_is_the_one_ssh_keygen_prints() -> None:
    # ssh-keygen -lf of the same line
    assert fingerprint(KEY) == "SHA256:cnmcsPqQgrIF4jj61QVgYj+0i8erbS7LwtQPWxd7nuM"


# --- the tag behind the notes


def test_reverse_dns_that_names_an_address_is_refused_before_it_is_sent() -> None:
    found = check(RESOURCES["ptr"], {"server_id": "20001", "domain": "192.0.2.1"}).failures
    assert found == {"domain": "must be a host name, not an IP address"}


@pytest.mark.parametrize("notes", ["", "mine", "mine [not a mark]", "[iac:short]"])
def test_notes_survive_the_tag(notes: str) -> None:
    assert split_tag(with_tag(notes, "[iac:abcdefgh]")) == (notes, "[iac:abcdefgh]")


def test_notes_without_a_tag_are_as_they_are() -> None:
    assert split_tag("mine") == ("mine", None)
    assert split_tag(None) == ("", None)


def test_an_unknown_input_is_named_with_the_one_that_is_like_it() -> None:
    assert failures({**GOOD, "note": "x"})["note"] == (
        "is not an input of this resource; did you mean notes?"
    )
    assert failures({**GOOD, "colour": "red"})["colour"] == "is not an input of this resource"


@pytest.mark.parametrize(
    ("change", "said"),
    [({"months": 2}, "and is 2"), ({"months": 2.0}, "and is 2"), ({"hours": 721.5}, "and is 721.5")],
)
def test_a_refused_number_is_repeated(change: dict[str, Any], said: str) -> None:
    assert next(iter(failures({**GOOD, **change}).values())).endswith(said)


def test_rules_over_several_fields_name_the_one_to_correct() -> None:
    assert failures({**GOOD, "months": 3, "hours": 1})["hours"].startswith("give either months or hours")


@pytest.mark.parametrize(
    ("cycle", "wrong", "right"), [("hourly", "months", "hours"), ("monthly", "hours", "months")]
)
def test_a_server_is_ordered_by_its_own_period(cycle: str, wrong: str, right: str) -> None:
    (reason,) = failures({**GOOD, "billing_cycle": cycle, wrong: 1}).values()
    assert reason.endswith(f" {cycle} server is ordered by {right}. Next: give {right} instead of {wrong}")


def test_only_numbers_of_64_bits_are_repeated() -> None:
    least = -(2**63) + 1
    assert failures({**GOOD, "tariff_id": least})["tariff_id"].endswith(f", and is {least}")
    for beyond in (2**63, -(2**63)):
        reason = failures({**GOOD, "tariff_id": beyond})["tariff_id"]
        assert reason.startswith("must be ")
        assert " and is " not in reason


@pytest.mark.parametrize(
    ("field", "given", "said"),
    [
        ("ssh_key_ids", CANARY, "must be a list, and is a text"),
        ("ssh_key_ids", {CANARY: CANARY}, "must be a list, and is a map"),
        ("custom_fields", [CANARY], "must be a map, and is a list"),
        ("custom_fields", 5, "must be a map, and is a number"),
        ("custom_fields", {"a": None}, "a value in it must be a text, and is null"),
        ("custom_fields", {5: "a"}, "[5] a name in it must be a text, and is a number"),
        ("notes", [CANARY], "must be a text, and is a list"),
        ("password", 5, "must be a text, and is a number"),
        ("os", True, "must be a text, and is true or false"),
        ("auto_renew", CANARY, "must be true or false, and is a text"),
        ("auto_renew", 5, "must be true or false, and is a number"),
        ("months", CANARY, "must be a whole number, and is a text"),
        ("months", True, "must be a whole number, and is True"),
        ("months", [1], "must be a whole number, and is a list"),
        ("tariff_id", object(), "must be a whole number, and is of another type"),
        ("tariff_id", 0, "must be greater than or equal to 1, and is 0"),
    ],
)
def test_a_wrong_type_is_told_with_what_was_given(field: str, given: Any, said: str) -> None:
    assert failures({**GOOD, field: given}) == {field: said}


@pytest.mark.parametrize("change", [{"password": 12345678}, {"notes": 12345678}, {"custom_fields": 12345678}])
def test_a_number_in_a_field_for_text_is_not_repeated(change: dict[str, Any]) -> None:
    assert "12345678" not in str(failures({**GOOD, **change}))


def test_a_refusal_says_what_to_do_next() -> None:
    assert str(InvalidInput({"os": "is required"}, SERVER.called({"name": "web"}))) == (
        "server 'web' is not valid: os: is required. Next: correct os"
    )
    assert str(InvalidInput({"id": "is gone. Next: wait"})).count("Next:") == 1
