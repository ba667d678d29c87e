"""``pulumi:autonaming``: a name that follows from the identity is taken, any other is refused."""

import pytest

from pulumi_hosting.provider.names import UNNAMED
from pulumi_hosting.provider.plugin.autonaming import chosen_name
from pulumi_hosting.provider.plugin.marshal import marshal, unmarshal
from pulumi_hosting.provider.plugin.protocol import provider_pb2 as rpc
from tests.provider.plugin_client import KEY, SERVER, WEB, Asked
from tests.support.programs import PUBLIC_KEY

Options = rpc.CheckRequest.AutonamingOptions
PARTS = {"web", "dev", "toys", "organization"}


@pytest.mark.parametrize(
    "proposed",
    [
        "web",
        "web-dev",
        "toys.dev.web",
        "organization-toys-dev-web",
        "web--dev",
        "webdev",
        "webweb",
        "DEV-web",
    ],
)
def test_what_is_made_of_the_identity_is_taken(proposed: str) -> None:
    assert chosen_name(Options(proposed_name=proposed), PARTS) == proposed


@pytest.mark.parametrize(
    "proposed",
    [
        "web-1f",  # ${hex(2)}
        "web-k3x9",  # ${alphanum(4)}
        "xqv-dev",  # ${string(3)}
        "web7",  # ${num(1)}
        "web-53a8b2c4-0a39-4c6e-9d27-8f3b1a2c4d5e",  # ${uuid}
        "acme-web",  # not told from a random one
        "we",
    ],
)
def test_what_may_be_random_is_refused_with_a_pattern_that_is_not(proposed: str) -> None:
    with pytest.raises(ValueError, match=r"may be random.*Next: pulumi config set --path .*, or give a name"):
        chosen_name(Options(proposed_name=proposed, mode=Options.ENFORCE), PARTS)


def checked(
    plugin: Asked, urn: str, news: dict[str, object], olds: dict[str, object], **options: object
) -> object:
    """The name after a check with ``options`` of the engine, or the reason of a refusal."""
    asked = rpc.CheckRequest(urn=urn, news=marshal(news), olds=marshal(olds), autonaming=Options(**options))  # type: ignore[arg-type]  # by name
    answer = plugin("Check", asked)
    return [failure.reason for failure in answer.failures] or unmarshal(answer.inputs).values["name"]


@pytest.mark.parametrize(("urn", "news"), [(SERVER, WEB), (KEY, {"publicKey": PUBLIC_KEY})])
def test_the_plugin_takes_the_name_only_if_the_program_gives_none(
    plugin: Asked, urn: str, news: dict[str, object]
) -> None:
    own = urn.rpartition("::")[2]
    named = f"{own}-dev"
    assert checked(plugin, urn, news, {}, proposed_name=named) == named
    assert checked(plugin, urn, {**news, "name": "mine"}, {}, proposed_name=named) == "mine"
    assert checked(plugin, urn, {**news, "name": "mine"}, {}, mode=Options.DISABLE) == "mine"
    # A program in Python sends the default, and says so.
    python = {**news, "name": own, UNNAMED: True}
    assert checked(plugin, urn, python, {}, proposed_name=named) == named
    assert checked(plugin, urn, {**news, "name": own}, {}, proposed_name=named) == own
    # What exists is not renamed when the setting comes.
    assert checked(plugin, urn, news, {**news, "name": own}, proposed_name=named) == own
    refusal = "name: is required, since pulumi:autonaming is disabled. Next: give a name"
    assert checked(plugin, urn, news, {}, mode=Options.DISABLE) == [refusal]


def test_the_scope_is_a_part_of_the_identity(plugin: Asked) -> None:
    assert isinstance(checked(plugin, SERVER, WEB, {}, proposed_name="team-web"), list)
    plugin.configure(scope="team")
    assert checked(plugin, SERVER, WEB, {}, proposed_name="team-web") == "team-web"


def test_the_engine_is_told_that_the_setting_is_known(plugin: Asked) -> None:
    assert plugin("Handshake", rpc.ProviderHandshakeRequest()).supports_autonaming_configuration
    configured = plugin("Configure", rpc.ConfigureRequest(args=marshal(plugin.settings)))
    assert configured.supports_autonaming_configuration
