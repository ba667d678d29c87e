"""Dynamic and native classes, run by Pulumi's SDK against a fake engine."""

import base64
import dataclasses
import inspect
import pickletools
import subprocess
import sys
import typing
from functools import partial
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.dynamic.dynamic import serialize_provider
from pulumi.runtime.settings import SETTINGS

import pulumi_hosting
from pulumi_hosting import native
from pulumi_hosting.installation import install_extras
from pulumi_hosting.provider import dynamic, resource_base
from pulumi_hosting.provider.names import camel
from pulumi_hosting.provider.names import class_of as class_name
from pulumi_hosting.provider.resource_shape import inputs_of, outputs_of, secrets_of
from pulumi_hosting.provider.sdk import dynamic_resources as classes
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.schema.fields import type_name
from pulumi_hosting.schema.lookups import LOOKUPS
from tests.provider.fake_engine import (
    FORMS,
    TOKENS,
    Engine,
    args_of,
    class_of,
    declared,
    revealed,
    sample,
    unrecorded,
)

# Frozen: users' states hold these texts, and an engine that finds another one updates every resource.
SERIALISED = {
    "server": "gASVOQAAAAAAAACMH3B1bHVtaV9ob3N0aW5nLnByb3ZpZGVyLmR5bmFtaWOUjA5TZXJ2ZXJQcm92aWRlcpSTlCmBlC4=",
    "domain": "gASVOQAAAAAAAACMH3B1bHVtaV9ob3N0aW5nLnByb3ZpZGVyLmR5bmFtaWOUjA5Eb21haW5Qcm92aWRlcpSTlCmBlC4=",
    "ssh_key": "gASVOQAAAAAAAACMH3B1bHVtaV9ob3N0aW5nLnByb3ZpZGVyLmR5bmFtaWOUjA5Tc2hLZXlQcm92aWRlcpSTlCmBlC4=",
    "server_ip": "gASVOwAAAAAAAACMH3B1bHVtaV9ob3N0aW5nLnByb3ZpZGVyLmR5bmFtaWOUjBBTZXJ2ZXJJcFByb3ZpZGVylJOUKYGULg==",
    "ptr": "gASVNgAAAAAAAACMH3B1bHVtaV9ob3N0aW5nLnByb3ZpZGVyLmR5bmFtaWOUjAtQdHJQcm92aWRlcpSTlCmBlC4=",
    "webhook_subscription": "gASVRgAAAAAAAACMH3B1bHVtaV9ob3N0aW5nLnByb3ZpZGVyLmR5bmFtaWOUjBtXZWJob29rU3Vic2NyaXB0aW9uUHJvdmlkZXKUk5QpgZQu",
}


# --- declaring ---------------------------------------------------------------------------------------------


def test_every_input_travels_by_its_name_on_the_wire(pretended: Engine, form: str, kind: str) -> None:
    given = declared(kind)
    pretended.run(lambda: class_of(form, kind)("main", **given))
    (made,) = pretended.recorded.made
    assert made.typ == TOKENS[form].format(class_name(kind))
    own = {name: value for name, value in made.inputs.items() if not name.startswith("__")}
    assert {name: revealed(value) for name, value in own.items()} == {
        camel(name): value for name, value in given.items()
    }
    secret = {name for name, value in own.items() if revealed(value) is not value}
    assert secret == {camel(name) for name in given if name in secrets_of(RESOURCES[kind])}


def test_args_and_keywords_are_the_same(pretended: Engine, form: str, kind: str) -> None:
    given = declared(kind)
    pretended.run(lambda: class_of(form, kind)("main", **given))
    pretended.run(lambda: class_of(form, kind)("main", args_of(kind)(**given)))
    first, second = pretended.recorded.requests
    assert first.object == second.object
    with pytest.raises(TypeError, match="either args or keywords"):
        class_of(form, kind)("main", args_of(kind)(**given), **given)


def test_the_forms_declare_alike(pretended: Engine, kind: str) -> None:
    given = declared(kind)
    pretended.run(lambda: [class_of(form, kind)("main", **given) for form in FORMS])
    ones = [
        {name: value for name, value in made.inputs.items() if not name.startswith("__")}
        for made in pretended.recorded.made
    ]
    assert ones[0] == ones[1]


def test_every_output_is_an_attribute(pretended: Engine, form: str, kind: str) -> None:
    shown = {field.name: field for field in outputs_of(RESOURCES[kind])}
    wire = {field.wire: sample(field.type, name) for name, field in shown.items()}
    pretended.recorded.outputs = {
        name: float(value) if type(value) is int else value for name, value in wire.items()
    }
    made = pretended.run(lambda: class_of(form, kind)("main", **declared(kind)))
    for name, field in shown.items():
        value = pretended.run(partial(getattr, made, name))
        assert unrecorded(value) == wire[field.wire], name
        assert type(value) is not float or field.type.kind == "number", name
        if field.type.model is not None:
            assert type(value).__name__ == type_name(field.type.model)


def test_secret_outputs_are_named_to_the_engine(pretended: Engine, form: str, kind: str) -> None:
    more = pulumi.ResourceOptions(additional_secret_outputs=["created_at"])
    pretended.run(lambda: class_of(form, kind)("main", **declared(kind), opts=more))
    (request,) = pretended.recorded.requests
    assert set(request.additionalSecretOutputs) == {*map(camel, secrets_of(RESOURCES[kind])), "createdAt"}


def test_each_form_takes_over_what_the_other_declared(pretended: Engine, form: str, kind: str) -> None:
    pretended.run(lambda: class_of(form, kind)("main", **declared(kind)))
    (request,) = pretended.recorded.requests
    aliased = [alias.spec.type for alias in request.aliases] + [
        urn.split("::")[2] for urn in request.aliasURNs
    ]
    other = "dynamic" if form == "native" else "native"
    assert aliased == [TOKENS[other].format(class_name(kind))]


def test_the_resources_own_name_is_the_default_one(pretended: Engine, form: str) -> None:
    pretended.run(lambda: class_of(form, "server")("web", tariff_id=1, os="debian-12"))
    pretended.run(lambda: class_of(form, "ssh_key")("key", public_key="ssh-ed25519 AAAA"))
    assert [made.inputs["name"] for made in pretended.recorded.made] == ["web", "key"]


def test_an_argument_that_is_not_given_is_not_sent(pretended: Engine, form: str) -> None:
    pretended.run(lambda: class_of(form, "server")("web", tariff_id=1, os="debian-12", notes=None))
    (made,) = pretended.recorded.made
    assert {name for name in made.inputs if not name.startswith("__")} == {"tariffId", "os", "name"}


def test_a_users_own_keys_stay_as_they_are(pretended: Engine, form: str) -> None:
    keys = {"auto_renew": "x", "data_center": "y", "camelCase": "z"}
    pretended.recorded.outputs = {"customFields": keys}
    made = pretended.run(
        lambda: class_of(form, "server")("web", tariff_id=1, os="debian-12", custom_fields=keys)
    )
    assert pretended.recorded.made[0].inputs["customFields"] == keys
    assert pretended.run(lambda: made.custom_fields) == keys


def test_an_item_of_a_list_cannot_be_ignored_by_its_index(pretended: Engine, form: str) -> None:
    hook = partial(class_of(form, "webhook_subscription"), "hook", url="https://h.example.com", events=["*"])
    opts = pulumi.ResourceOptions(ignore_changes=["events[0]"])
    with pytest.raises(pulumi.RunError, match=r"'events\[0\]'.*Next: ignore the whole list, 'events'"):
        pretended.run(lambda: hook(opts=opts))
    keys = partial(class_of(form, "server"), "web", tariff_id=1, os="debian-12")
    with pytest.raises(pulumi.RunError, match="whole list, 'ssh_key_ids'"):
        pretended.run(lambda: keys(opts=pulumi.ResourceOptions(ignore_changes=["ssh_key_ids[1]"])))
    pretended.run(lambda: hook(opts=pulumi.ResourceOptions(ignore_changes=["events", 'customFields["a"]'])))


def test_options_name_fields_as_python_does(pretended: Engine, form: str) -> None:
    opts = pulumi.ResourceOptions(
        ignore_changes=["auto_renew", "custom_fields.data_center"], replace_on_changes=["next_due_at"]
    )
    pretended.run(lambda: class_of(form, "server")("web", tariff_id=1, os="debian-12", opts=opts))
    (request,) = pretended.recorded.requests
    assert list(request.ignoreChanges) == ["autoRenew", "customFields.data_center"]
    assert list(request.replaceOnChanges) == ["nextDueAt"]
    assert opts.ignore_changes == ["auto_renew", "custom_fields.data_center"]


def test_wrong_arguments_are_reported_by_name(form: str) -> None:
    server = class_of(form, "server")
    with pytest.raises(
        TypeError, match=r"Server\('web'\): unknown argument 'tarif_id'. Valid arguments: adopt_id, "
    ):
        server("web", tarif_id=1, os="debian-12")
    with pytest.raises(TypeError, match=r"Server\('web'\): missing arguments 'os', 'tariff_id'"):
        server("web")
    with pytest.raises(TypeError, match=r"missing argument 'tariff_id'. Next: give tariff_id or tariff$"):
        server("web", os="debian-12")
    with pytest.raises(TypeError, match=r"^Server\.__init__\(\) missing .*'resource_name'$"):
        server()


def test_wrong_arguments_of_providers_and_lookups_are_one_line_too() -> None:
    provider: Any = native.Provider
    with pytest.raises(pulumi.RunError, match=r"Provider\('eu'\): unknown argument 'maxCharge'\. Valid arg"):
        provider("eu", maxCharge=5)
    for lookups in (pulumi_hosting, native):
        ask: Any = lookups.get_server
        with pytest.raises(
            pulumi.RunError, match=r"get_server\(\): missing argument 'server_id'\. Next: give"
        ):
            ask()
        with pytest.raises(
            TypeError, match=r"get_server\(\): unknown argument 'servr_id'.* write server_id in"
        ):
            ask(servr_id="5")
        with pytest.raises(
            TypeError, match=r"get_server\(\): takes 1 argument without a name, and 2 are given"
        ):
            ask("5", "6")
    with pytest.raises(AttributeError, match=r"has no attribute 'Servr' \(did you mean Server\?\)"):
        pulumi_hosting.__getattr__("Servr")


def test_options_are_the_third_argument(pretended: Engine, form: str) -> None:
    opts = pulumi.ResourceOptions(protect=True)
    pretended.run(
        lambda: class_of(form, "server")("web", args_of("server")(tariff_id=1, os="debian-12"), opts)
    )
    pretended.run(lambda: class_of(form, "server")("db", None, opts, tariff_id=1, os="debian-12"))
    assert [request.protect for request in pretended.recorded.requests] == [True, True]
    with pytest.raises(TypeError, match=r"Server\('web'\): args must be ServerArgs, and is ResourceOptions"):
        class_of(form, "server")("web", opts)


def test_a_wrong_argument_names_the_line_of_the_program(form: str, tmp_path: Path) -> None:
    program = tmp_path / "shop.py"
    program.write_text("def main(server):\n    x = 1\n    server('web', tariff_id=1)\n")
    names: dict[str, Any] = {}
    exec(compile(program.read_text(), program, "exec"), names)  # noqa: S102  # the text above
    with pytest.raises(TypeError, match=rf"^{program}:3: Server\('web'\): missing argument 'os'"):
        names["main"](class_of(form, "server"))


OF_A_SERVER: dict[str, dict[str, Any]] = {"server_ip": {}, "ptr": {"domain": "www.example.com"}}


@pytest.mark.parametrize("of_server", OF_A_SERVER)
def test_what_belongs_to_a_server_goes_with_it(
    pretended: Engine, form: str, of_server: str, caplog: pytest.LogCaptureFixture
) -> None:
    given, servers = OF_A_SERVER[of_server], list[Any]()

    def program() -> None:
        web = class_of(form, "server")("web", tariff_id=1, os="debian-12")
        servers.append(web)
        class_of(form, of_server)("one", server=web, **given)
        class_of(form, of_server)("two", args_of(of_server)(server=web, **given))

    pretended.run(program)
    server, *of_it = pretended.recorded.requests
    assert [request.deletedWith.rpartition("::")[2] for request in of_it] == ["web", "web"]
    assert [dict(request.object.items())["serverId"] for request in of_it] == ["4711", "4711"]
    of_form = {"dynamic": "pulumi:shop/dev/server/web", "native": pretended.run(lambda: servers[0].urn)}
    assert [dict(request.object.items())["__server"] for request in of_it] == [of_form[form]] * 2
    assert not server.deletedWith
    assert caplog.messages == []


@pytest.mark.parametrize("kept", ["retain_on_delete", "protect", "id", "get"])
def test_a_server_that_stays_takes_nothing_with_it(pretended: Engine, form: str, kept: str) -> None:
    """On an engine without transforms, what the declaration says."""
    given: dict[str, Any] = {"retain_on_delete": True, "protect": True, "id": "815"}

    def program() -> None:
        server, address = class_of(form, "server"), class_of(form, "server_ip")
        opts = pulumi.ResourceOptions(**{kept: given[kept]}) if kept in given else None
        web = server("web", tariff_id=1, os="debian-12", opts=opts) if opts else server.get("web", "815")
        address("one", server=web)

    pretended.run(program)
    assert [
        request.deletedWith
        for request in pretended.recorded.requests
        if "serverId" in dict(request.object.items())
    ] == [""]


@pytest.mark.parametrize("of_server", OF_A_SERVER)
def test_the_id_of_a_server_alone_warns(
    pretended: Engine, form: str, of_server: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = OF_A_SERVER[of_server]

    def program() -> None:
        web = class_of(form, "server")("web", tariff_id=1, os="debian-12")
        class_of(form, of_server)("one", server_id=web.id, **given)
        class_of(form, of_server)(
            "two", server_id=web.id, **given, opts=pulumi.ResourceOptions(deleted_with=web)
        )
        class_of(form, of_server)("three", server_id="4711", **given)

    pretended.run(program)
    warned = [line for line in caplog.messages if "Next: declare it with server=" in line]
    assert len(warned) == 1
    assert warned[0].startswith("destroy ")
    assert warned[0].endswith('in place of server_id; Server.get("NAME", id) is a server of another stack')


def test_wrong_arguments_about_the_server_are_reported(form: str) -> None:
    address = class_of(form, "server_ip")
    with pytest.raises(TypeError, match=r"ServerIp\('one'\): missing argument 'server', or 'server_id'"):
        address("one")
    with pytest.raises(
        TypeError,
        match=r"ServerIp\('one'\): server must be a Server, and this is a str\. Next: give "
        r"server_id",
    ):
        address("one", server="4711")
    with pytest.raises(
        TypeError, match=r"ServerIp\('one'\): unknown argument 'servr'\. Valid arguments: .*server"
    ):
        address("one", server_id="4711", servr=1)


def test_an_object_is_looked_up_by_its_id(pretended: Engine, form: str, kind: str) -> None:
    pretended.recorded.outputs = {"createdAt": "2026-01-02T03:04:05Z"} if kind == "server" else {}
    found = pretended.run(lambda: class_of(form, kind).get("old", "815"))
    (made,) = pretended.recorded.made
    assert (made.typ, made.resource_id) == (TOKENS[form].format(class_name(kind)), "815")
    assert {name: value for name, value in made.inputs.items() if name != "__provider"} == {}
    assert type(found) is class_of(form, kind)
    if kind == "server":
        assert pretended.run(lambda: found.created_at) == "2026-01-02T03:04:05Z"


def test_a_provider_holds_its_key_as_a_secret(pretended: Engine) -> None:
    account = pretended.run(lambda: native.Provider("second", api_key="vk_live_cAnary", max_charge=25))
    pretended.run(lambda: native.SshKey("key", public_key="x", opts=pulumi.ResourceOptions(provider=account)))
    made, key = pretended.recorded.made
    assert made.typ == "pulumi:providers:hosting"
    assert revealed(made.inputs["apiKey"]) == "vk_live_cAnary"
    assert made.inputs["apiKey"] != "vk_live_cAnary"
    assert {name: value for name, value in made.inputs.items() if name != "apiKey"} == {"maxCharge": "25"}
    assert key.provider is not None
    assert "second" in key.provider


# --- a dynamic resource's identity -------------------------------------------------------------------------


def _without_protocol(text: str) -> bytes:
    """A pickle without the number of its protocol: 4, and 5 from Python 3.14 on. Every Python reads both."""
    pickled = base64.b64decode(text)
    assert pickled[:1] == b"\x80"  # the opcode of the protocol
    assert pickled[1] in (4, 5)
    return pickled[2:]


def test_what_pulumi_stores_of_a_provider_never_changes() -> None:
    stored = {
        provider.kind: serialize_provider(provider()) for provider in dynamic._Provider.__subclasses__()
    }
    assert set(stored) == set(RESOURCES)
    for kind, text in SERIALISED.items():
        assert _without_protocol(stored[kind]) == _without_protocol(text)
    for kind, text in stored.items():  # a reference to a class by its name, and nothing else
        names = [
            argument
            for _, argument, _ in pickletools.genops(base64.b64decode(text))
            if isinstance(argument, str)
        ]
        assert names == ["pulumi_hosting.provider.dynamic", f"{class_name(kind)}Provider"]


def test_a_declaration_is_named_by_project_stack_type_parent_and_name(pretended: Engine) -> None:
    def program() -> None:
        team = pulumi.ComponentResource("shop:index:Team", "blue")
        classes.SshKey("key", public_key="x")
        classes.SshKey("key2", public_key="x", opts=pulumi.ResourceOptions(parent=team))

    pretended.run(program)
    named = {
        made.name: made.inputs["__identity"]
        for made in pretended.recorded.made
        if "__identity" in made.inputs
    }
    assert named == {
        "key": "pulumi:shop/dev/ssh_key/key",
        "key2": "pulumi:shop/dev/ssh_key/shop:index:Team:blue/key2",
    }


# --- what is generated -------------------------------------------------------------------------------------


def test_every_field_is_in_the_signature_and_in_args(kind: str) -> None:
    resource = RESOURCES[kind]
    names = {field.name for field in inputs_of(resource)} | (
        {"server"} if "server_id" in resource.Inputs.model_fields else set()
    )
    assert {field.name for field in dataclasses.fields(args_of(kind))} == names
    for form in FORMS:
        by_args, by_keywords = typing.get_overloads(class_of(form, kind).__init__)
        hints = inspect.get_annotations(by_keywords)
        assert hints.keys() - {"resource_name", "args", "opts", "return"} == names
        assert inspect.get_annotations(by_args)["args"] is args_of(kind)
        shown_to_users = inspect.signature(class_of(form, kind)).parameters
        assert list(shown_to_users)[:3] == ["resource_name", "args", "opts"]
        assert list(shown_to_users)[3:] == [field.name for field in dataclasses.fields(args_of(kind))]
        assert all(f":param {name}: " in class_of(form, kind).__init__.__doc__ for name in names)
        shown = {field.name for field in outputs_of(resource)}
        assert {
            name
            for name, hint in class_of(form, kind).__annotations__.items()
            if typing.get_origin(hint) is pulumi.Output
        } == shown
        assert class_of(form, kind).__doc__


def test_args_do_not_print_secrets() -> None:
    assert "cAnary" not in repr(pulumi_hosting.ServerArgs(tariff_id=1, os="debian-12", password="cAnary123"))


def test_every_name_of_the_package_is_there() -> None:
    for name in pulumi_hosting.__all__:
        if name != "UNSET":  # an object; of modules the last part of the name
            assert getattr(pulumi_hosting, name).__name__.rpartition(".")[2] == name
    made = {class_name(resource.kind) for resource in RESOURCES.values()}
    asked = {name for lookup in LOOKUPS.values() for name in (lookup.name, f"{lookup.name}_output")}
    assert made | {f"{name}Args" for name in made} | asked <= set(pulumi_hosting.__all__)
    assert {*made, *(f"{name}Args" for name in made), *asked, "Provider"} == set(native.__all__)
    assert set(pulumi_hosting.__all__) <= set(dir(pulumi_hosting))


@pytest.mark.parametrize(
    "statement",
    [
        "from pulumi_hosting import Ptr",
        "from pulumi_hosting import get_me",
        "from pulumi_hosting.native import Server",
    ],
)
def test_without_pulumi_one_line_says_what_to_install(statement: str) -> None:
    blocked = (
        "import sys; sys.modules['pulumi'] = None\nimport pulumi_hosting, pulumi_hosting.client.client\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", blocked + statement], check=False, capture_output=True, text=True
    )
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].endswith(f"needs Pulumi's SDK. Next: {install_extras('pulumi')}")


def waited_for(resource: Any) -> set[str]:
    return {
        name
        for name, value in vars(resource).items()
        if isinstance(value, pulumi.Output) and value._data in SETTINGS.outputs
    }


def test_a_program_waits_for_the_id_and_the_urn_of_a_resource(
    pretended: Engine, form: str, kind: str
) -> None:
    async def program() -> list[Any]:
        made = class_of(form, kind)("main", **declared(kind))
        looked_up = class_of(form, kind).get("old", "815")
        assert waited_for(made) == waited_for(looked_up) == {"id", "urn"}
        return [made, looked_up]

    for resource in pretended.run(program):
        assert all(vars(resource)[name]._data.done() for name in resource._outputs.values())
    assert not SETTINGS.outputs


def test_what_a_program_does_with_an_output_is_waited_for(pretended: Engine, form: str) -> None:
    seen = list[str]()

    async def program() -> None:
        class_of(form, "server")("main", **declared("server")).name.apply(seen.append)

    pretended.run(program)
    assert seen == [declared("server")["name"]]


def test_an_output_that_a_subclass_sets_first_is_waited_for(pretended: Engine, form: str) -> None:
    def refuse(name: str) -> None:
        raise ZeroDivisionError

    class Checked(class_of(form, "server")):  # type: ignore[misc]  # a class of either form
        def __init__(self) -> None:
            self.checked = pulumi.Output.from_input("main").apply(refuse)
            super().__init__("main", **declared("server"))

    def program() -> None:
        assert waited_for(Checked()) == {"id", "urn", "checked"}

    with pytest.raises(ZeroDivisionError):
        pretended.run(program)


def test_with_an_older_sdk_a_program_waits_for_every_output(
    pretended: Engine, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource_base, "_untrack", None)

    async def program() -> None:
        server = class_of(form, "server").get("old", "815")
        assert waited_for(server) >= {"id", "urn", *server._outputs.values()}

    pretended.run(program)
