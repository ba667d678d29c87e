"""The functions that look up, run by Pulumi's SDK against a fake engine and the emulator."""

import dataclasses
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pulumi
import pytest

from pulumi_hosting import native
from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import NotFound
from pulumi_hosting.provider import invoke, lookup_tokens
from pulumi_hosting.provider.declaration_mistakes import program_line
from pulumi_hosting.provider.names import camel
from pulumi_hosting.provider.provider_session import ProviderSession
from pulumi_hosting.provider.sdk import dynamic_resources as classes
from pulumi_hosting.provider.sdk import lookups as functions
from pulumi_hosting.provider.sdk import results
from pulumi_hosting.schema.fields import Type
from pulumi_hosting.schema.lookups import LOOKUPS
from tests.contract.harness import ApiHarness
from tests.provider.fake_engine import Engine, unrecorded
from tests.provider.test_lookups import prepared


@pytest.fixture
def account(api_over_http: ApiHarness, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiHarness]:
    """The live account, in the environment of the program."""
    monkeypatch.setenv("HOSTING_API_KEY", api_over_http.live._settings.api_key.reveal())
    monkeypatch.setenv("HOSTING_BASE_URL", api_over_http.live.base_url)
    session = ProviderSession()
    monkeypatch.setattr(invoke, "_session", lambda: session)
    yield api_over_http
    if session._client is not None:
        session.client.close()


@pytest.mark.parametrize("dialect", ["spec"])  # test_lookups reads both
@pytest.mark.parametrize("name", LOOKUPS)
def test_all_four_ways_to_ask_find_the_same(account: ApiHarness, pretended: Engine, name: str) -> None:
    lookup = LOOKUPS[name]
    wire = prepared(account, name)
    args = {field.name: wire[field.wire] for field in lookup.arguments if field.wire in wire}
    wanted = lookup_tokens.call(account.live, name, wire)
    expected = wanted if lookup.single is None else wanted[camel(lookup.single)]
    pretended.recorded.answer = lambda token, given: lookup_tokens.call(account.live, token, given)
    later = {key: pulumi.Output.from_input(value) for key, value in args.items()}
    for module in (functions, native):
        now = pretended.run(partial(getattr(module, lookup.name), **args))
        then = pretended.run(partial(getattr(module, f"{lookup.name}_output"), **later))
        assert settled(unrecorded(now)) == settled(unrecorded(then)) == settled(expected)
    assert [call.token for call in pretended.recorded.asked] == [f"hosting:index:{name}"] * 2


def settled(answer: Any) -> Any:
    """Without what the service counts again in each answer, and as an engine carries it: numbers are
    floats, nulls are nothing.
    """
    if isinstance(answer, dict):
        moving = ("uptimeSeconds", "cpuPercent", "memory", "lastUsedAt", "computedAt", "checkedAt")
        return {
            key: settled(value) for key, value in answer.items() if key not in moving and value is not None
        }
    if isinstance(answer, list):
        return [settled(item) for item in answer]
    return float(answer) if type(answer) is int else answer


@pytest.mark.parametrize("dialect", ["spec"])
def test_attributes_are_lifted_and_whole_numbers_whole(account: ApiHarness, pretended: Engine) -> None:
    account.server()
    pretended.recorded.answer = lambda token, given: floats(lookup_tokens.call(account.live, token, given))
    for module in (functions, native):
        found: Any = module
        number = pretended.run(
            partial(lambda found: found.get_servers_output(status="active")[0].tariff.id, found)
        )
        assert (number, type(number)) == (account.tariff().id, int)


def floats(value: Any) -> Any:
    """As numbers arrive from an engine."""
    if isinstance(value, dict):
        return {key: floats(part) for key, part in value.items()}
    if isinstance(value, list):
        return [floats(part) for part in value]
    return float(value) if type(value) is int else value


@pytest.mark.parametrize("dialect", ["spec"])
def test_a_lookup_result_cannot_be_changed(account: ApiHarness, pretended: Engine) -> None:
    found = pretended.run(lambda: functions.get_balance())
    assert repr(found).startswith("BalanceInfo(balance='")
    with pytest.raises(AttributeError):
        found.balance = "0.00"


@pytest.mark.parametrize("dialect", ["spec"])
def test_nothing_is_asked_before_the_arguments_are_known(account: ApiHarness) -> None:
    before = len(account.requests())
    engine = Engine(preview=True)
    key = engine.run(lambda: classes.SshKey("key", public_key="x"))  # its id is known after the preview only
    assert engine.run(lambda: functions.get_server_output(key.fingerprint).is_known()) is False
    assert len(account.requests()) == before


@pytest.mark.parametrize("dialect", ["spec"])
def test_a_secret_argument_makes_the_answer_a_secret(account: ApiHarness, pretended: Engine) -> None:
    secret = pulumi.Output.secret("free-name.com")
    assert pretended.run(lambda: functions.get_domain_availability_output(secret).is_secret()) is True
    assert pretended.run(lambda: functions.get_balance_output().is_secret()) is False


@pytest.mark.parametrize("dialect", ["spec"])
def test_an_answer_that_holds_a_secret_is_one(
    account: ApiHarness, pretended: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No read of the API shows one today; an answer with a secret field in its model stands in.
    shown_once = dataclasses.replace(LOOKUPS["getWebhook"], value=Type("object", model=m.SubscriptionCreated))
    webhook = account.webhook().id
    assert pretended.run(lambda: functions.get_webhook_output(str(webhook)).is_secret()) is False
    monkeypatch.setitem(LOOKUPS, "getWebhook", shown_once)
    monkeypatch.setattr(results, "SubscriptionCreatedInfo", results.SubscriptionInfo, raising=False)
    assert pretended.run(lambda: functions.get_webhook_output(str(webhook)).is_secret()) is True


@pytest.mark.parametrize("dialect", ["spec"])
def test_what_goes_wrong_ends_the_program_with_one_line(account: ApiHarness, pretended: Engine) -> None:
    for ask, has_line in (
        (functions.get_server, True),
        (lambda id: pretended.run(lambda: functions.get_server_output(id)), False),
    ):
        with pytest.raises(pulumi.RunError) as failed:
            ask("4242")
        assert "\n" not in str(failed.value)
        assert str(failed.value).startswith(f"{program_line().file}:") == has_line
        assert isinstance(failed.value.__cause__, NotFound)


def test_without_a_key_it_says_which_setting_is_missing(
    pretended: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOSTING_API_KEY", raising=False)
    monkeypatch.delenv("HOSTING_BASE_URL", raising=False)
    invoke._session.cache_clear()
    with pytest.raises(
        pulumi.RunError, match=re.escape("HOSTING_API_KEY is not set. Next: set it, or run pulumi config")
    ):
        functions.get_me()


@pytest.mark.parametrize("dialect", ["spec"])
def test_the_stacks_configuration_is_enough(
    api_over_http: ApiHarness, pretended: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOSTING_API_KEY", raising=False)
    monkeypatch.delenv("HOSTING_BASE_URL", raising=False)
    session = ProviderSession()
    monkeypatch.setattr(invoke, "_session", lambda: session)
    pulumi.runtime.set_all_config(
        {
            "hosting:apiKey": api_over_http.test._settings.api_key.reveal(),
            "hosting:baseUrl": api_over_http.test.base_url,
        }
    )
    try:
        assert functions.get_me().livemode is False
    finally:
        pulumi.runtime.set_all_config({})
        session.client.close()
