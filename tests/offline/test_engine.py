"""Whole operations on programs that the recordings do not have."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pulumi_hosting.offline import ConfigurationError, Result, Stack
from pulumi_hosting.offline.display.events import Event
from pulumi_hosting.offline.engine import program_process
from pulumi_hosting.offline.errors import OfflineError, UnfinishedCreates
from pulumi_hosting.offline.generator.decisions import Decisions
from pulumi_hosting.offline.generator.generator import StepGenerator
from pulumi_hosting.offline.providers.process import PluginProcess
from pulumi_hosting.offline.storage.backend import Backend
from tests.offline.conftest import Playground, write
from tests.offline.replay import HERE, Toys, children, end

TWO = """
a = Thing("a", {"name": "a", "size": "s"})
b = Thing("b", {"name": "b", "note": a.id})
"""


def up(toys: Toys, **options: bool) -> Result:
    return toys.stack().up(parallel=4, **options)


def methods(toys: Toys) -> list[str]:
    return [call["method"] for call in toys.calls()]


def names(result: Result, op: str) -> list[str]:
    return [urn.rsplit("::", 1)[-1] for done, urn, _ in result.operations if done == op]


# Programs that fail.


def test_a_failing_program_shows_its_own_traceback(playground: Playground) -> None:
    toys = playground('Thing("a", {"name": "a"})\ndef helper():\n    raise ValueError("no such plan")\nhelper()')
    result = up(toys)
    assert result.exit_code == 1
    (message,) = result.errors
    assert message.startswith("Program failed with an unhandled exception:\nTraceback")
    assert "ValueError: no such plan" in message
    assert "in helper" in message
    assert "pulumi_hosting" not in message


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("raise pulumi.RunError('choose a region')", "choose a region"),
        ("import sys; sys.exit(3)", "program exited with non-zero exit code: 3"),
        ('Thing("a", {"name": "a"})\nThing("a", {"name": "a"})', "Duplicate resource URN"),
        ("import nowhere", "No module named 'nowhere'"),
    ],
)
def test_what_went_wrong_is_said(playground: Playground, source: str, problem: str) -> None:
    result = up(playground(source))
    assert result.exit_code == 1
    assert problem in "\n".join(result.errors)


def test_a_program_that_is_missing(playground: Playground) -> None:
    toys = playground("")
    (toys.project / "__main__.py").unlink()
    assert up(toys).errors == [f"unable to find main python program `__main__.py` in `{toys.project}`"]


def test_a_python_that_is_missing(playground: Playground) -> None:
    toys = playground("")
    toys.environ["PULUMI_PYTHON_CMD"] = str(toys.project / "nopython")
    result = up(toys)
    assert result.exit_code == 1
    assert "PULUMI_PYTHON_CMD" in result.errors[0]


def test_a_program_may_be_a_file(playground: Playground) -> None:
    toys = playground("import toykit\npulumi.export('main', __name__)")
    (toys.project / "__main__.py").rename(toys.project / "app.py")
    (toys.project / "Pulumi.yaml").write_text("name: toys\nruntime: python\nmain: app.py\n")
    assert up(toys).outputs == {"main": "__main__"}


def test_what_a_program_may_ask(playground: Playground) -> None:
    toys = playground(
        "config = pulumi.Config()\n"
        "pulumi.export('asked', [pulumi.get_project(), pulumi.get_stack(), pulumi.get_organization(), config.get('size')])\n"
        "pulumi.export('key', config.require_secret('key'))\n"
        "pulumi.export('dry', pulumi.runtime.is_dry_run())\n"
        "pulumi.log.info('hello'); pulumi.log.warn('careful'); print('plain'); pulumi.log.debug('quiet')"
    )
    toys.stack().set_config("size", "large")
    toys.stack().set_config("key", "hush", secret=True)
    events: list[Event] = []
    result = toys.stack(events.append).up()
    assert result.outputs == {"asked": ["toys", "dev", "organization", "large"], "key": "[secret]", "dry": False}
    said = {(event["diagnosticEvent"]["severity"], event["diagnosticEvent"]["message"]) for event in events if "diagnosticEvent" in event}
    assert {("info", "hello\n"), ("warning", "careful\n"), ("info", "plain\n"), ("debug", "quiet\n")} <= said
    assert "hush" not in json.dumps(events)
    assert "hush" not in toys.stack().backend.stack_file("dev").read_text()
    assert toys.stack().outputs(show_secrets=True)["key"] == "hush"
    assert toys.stack().preview().outputs["dry"] is True


def test_a_secret_that_a_check_refuses_stays_secret(playground: Playground) -> None:
    toys = playground('Thing("a", {"name": pulumi.Output.secret("bad")})')
    result = up(toys)
    assert result.errors == [
        "pulumi-python:dynamic/toy:Thing resource 'a': property name value [secret] has a problem: name must not be bad"
    ]


def test_what_is_not_supported_is_said_in_one_line(playground: Playground) -> None:
    toys = playground('class Box(pulumi.ComponentResource): ...\nBox("a:b:Box", "box", {}, None, remote=True)')
    result = up(toys)
    assert result.exit_code == 1
    assert result.errors == ["the offline engine does not support components that live in a plugin; run this program with Pulumi's own CLI"]


def test_a_stack_reference_is_not_supported(playground: Playground) -> None:
    result = up(playground('pulumi.StackReference("organization/other/dev")'))
    assert result.exit_code == 1
    assert len(result.errors) == 1


# Providers that fail.


def test_a_plugin_that_is_missing(playground: Playground) -> None:
    toys = playground('pulumi.CustomResource("elsewhere:index:Thing", "a", {})')
    result = up(toys)
    assert result.errors[0].startswith("no resource plugin 'pulumi-resource-elsewhere' found on PATH")


@pytest.mark.parametrize(
    ("script", "problem"),
    [("#!/bin/sh\necho oops >&2\nexit 1\n", "did not start"), ("#!/bin/sh\necho hello\nsleep 5\n", "'hello' instead of a port")],
)
def test_a_plugin_that_does_not_start(playground: Playground, script: str, problem: str) -> None:
    toys = playground('Thing("a", {"name": "a"})', form="native")
    plugin = toys.project.parent / "bin" / "pulumi-resource-toy"
    plugin.write_text(script)
    result = up(toys)
    assert result.exit_code == 1
    assert problem in result.errors[0]


def test_a_provider_that_dies(playground: Playground) -> None:
    toys = playground('Thing("a", {"name": "a"})', form="native")
    plugin = toys.project / "toykit" / "plugin.py"
    plugin.write_text(
        plugin.read_text().replace(
            '        fault = faulty(context, f"create:', '        import os; os._exit(9)\n        fault = faulty(context, f"create:'
        )
    )
    result = up(toys)
    assert result.exit_code == 1
    assert "went away" in result.errors[0]
    assert toys.state()["pending"] == []


def test_what_is_being_made_when_another_fails_is_saved(playground: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_process, "END_TIMEOUT", 0.1)
    toys = playground('Thing("a", {"name": "a"})\nThing("b", {"name": "b"})')
    (toys.service / "faults.json").write_text('{"create:a": "sleep:1,raise", "create:b": "sleep:3"}')
    result = up(toys)
    assert result.exit_code == 1
    assert list(toys.world()) == ["b#1"]
    assert [item["name"] for item in toys.state()["resources"]] == ["toys-dev", "b"]
    assert toys.state()["pending"] == []


def test_a_state_that_cannot_be_saved(playground: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(backend: Backend, stack: str, deployment: str | None) -> None:
        raise OSError(28, "No space left on device")

    toys = playground('Thing("a", {"name": "a"})')
    monkeypatch.setattr(Backend, "write", full)
    result = up(toys)
    assert result.exit_code == 1
    assert "could not be saved" in result.errors[0]
    assert "No space left on device" in result.errors[0]
    assert toys.world() == {}


def test_an_error_of_our_own_is_one_line_without_values(
    playground: Playground, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise LookupError("a value of the program")

    toys = playground('Thing("a", {"name": "a"})')
    monkeypatch.setattr(Decisions, "find_old", broken)
    (message,) = up(toys).errors
    assert message == "internal error of the offline engine (LookupError). Next: run again with -v 9 for details"
    monkeypatch.undo()
    up(toys)
    monkeypatch.setattr(StepGenerator, "deletions", broken)
    assert toys.stack().destroy().errors == [message]
    assert "a value of the program" not in "".join(capfd.readouterr())


# Resources the recordings do not have.


def test_components_and_their_outputs(playground: Playground) -> None:
    source = """
class Box(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("toy:index:Box", name, {"size": "s"}, opts)
        self.inner = Thing(f"{name}-inner", {"name": "i"}, pulumi.ResourceOptions(parent=self))
        self.register_outputs({"id": self.inner.id})
Box("box")
"""
    toys = playground(source)
    assert up(toys).changes == {"create": 3}
    states = {state.name: state for state in toys.stack().snapshot().resources}
    assert states["box"].outputs == {"id": "i#1"}
    assert states["box-inner"].urn == "urn:pulumi:dev::toys::toy:index:Box$pulumi-python:dynamic/toy:Thing::box-inner"
    assert up(toys).changes == {"same": 3}
    # Renamed with an alias, its child comes along.
    write(toys, source.replace('Box("box")', 'Box("case", pulumi.ResourceOptions(aliases=[pulumi.Alias(name="box")]))'))
    result = up(toys)
    assert result.changes == {"same": 3}
    assert {state.name for state in toys.stack().snapshot().resources} >= {"case", "case-inner"}
    result = toys.stack().destroy()
    assert names(result, "delete") == ["case-inner", "case", "toys-dev"]


def test_a_provider_without_opinion_leaves_the_comparison_to_the_engine(playground: Playground) -> None:
    toys = playground('Thing("a", {"name": "a", "size": "s"}, pulumi.ResourceOptions(replace_on_changes=["note"]))')
    module = toys.project / "toykit" / "dyn.py"
    module.write_text(module.read_text().replace("changes=bool(changed),", "changes=None,"))
    up(toys)
    assert up(toys).changes == {"same": 2}
    write(toys, 'Thing("a", {"name": "a", "size": "s", "note": "n"}, pulumi.ResourceOptions(replace_on_changes=["note"]))')
    result = toys.stack().preview()
    assert result.changes == {"replace": 1, "same": 1}
    assert [diffs for op, _, diffs in result.operations if op == "replace"] == [("note",)]


def test_a_replacement_trigger(playground: Playground) -> None:
    toys = playground('Thing("a", {"name": "a"}, pulumi.ResourceOptions(replacement_trigger="one"))')
    up(toys)
    assert up(toys).changes == {"same": 2}
    write(toys, 'Thing("a", {"name": "a"}, pulumi.ResourceOptions(replacement_trigger="two"))')
    assert up(toys).changes == {"replace": 1, "same": 1}


def test_delete_before_replace_by_option_and_a_create_that_then_fails(playground: Playground) -> None:
    source = 'Thing("a", {{"name": "a", "size": "{}"}}, pulumi.ResourceOptions(delete_before_replace=True))'
    toys = playground(source.format("s"))
    up(toys)
    write(toys, source.format("L"))
    (toys.service / "faults.json").write_text('{"create:a": "raise"}')
    assert up(toys).exit_code == 1
    (state,) = [state for state in toys.stack().snapshot().resources if state.name == "a"]
    assert state.pending_replacement
    assert toys.world() == {}
    # It is gone: a refresh does not look for it, and the next run only makes the new one.
    assert toys.stack().refresh().exit_code == 0
    (toys.service / "faults.json").write_text("{}")
    (toys.service / "calls.jsonl").unlink()
    result = up(toys)
    assert (result.exit_code, result.changes) == (0, {"replace": 1, "same": 1})
    assert "Delete" not in methods(toys)
    assert list(toys.world()) == ["a#2"]


def test_a_resource_gone_for_good_while_its_replacement_was_pending(playground: Playground) -> None:
    source = 'Thing("a", {{"name": "a", "size": "{}"}}, pulumi.ResourceOptions(delete_before_replace=True))'
    toys = playground(source.format("s"))
    up(toys)
    write(toys, source.format("L"))
    (toys.service / "faults.json").write_text('{"create:a": "raise"}')
    up(toys)
    write(toys, "")
    assert up(toys).exit_code == 0
    assert [state["name"] for state in toys.state()["resources"]] == ["toys-dev"]


def test_a_protected_dependent_stops_a_delete_first_replacement(playground: Playground) -> None:
    source = """
a = Thing("a", {{"name": "a", "size": "{}", "note": "dbr"}})
Thing("b", {{"name": "b", "size": a.id}}, pulumi.ResourceOptions(protect=True))
"""
    toys = playground(source.format("s"))
    up(toys)
    write(toys, source.format("L"))
    result = up(toys)
    assert result.exit_code == 1
    assert "as part of replacing" in result.errors[0]
    assert set(toys.world()) == {"a#1", "b#1"}


def test_an_existing_thing_is_taken_over_by_import(playground: Playground) -> None:
    toys = playground('Thing("z", {"name": "z", "size": "s"}, pulumi.ResourceOptions(import_="z#7"))', form="native")
    thing = {"name": "z", "size": "s", "status": "running", "secretOut": "q"}
    (toys.service / "world.json").write_text(json.dumps({"things": {"z#7": thing}, "counts": {}}))
    result = up(toys)
    assert (result.exit_code, result.changes) == (0, {"create": 1, "import": 1})
    assert up(toys).changes == {"same": 2}
    assert toys.world() == {"z#7": thing}
    write(toys, 'Thing("y", {"name": "y"}, pulumi.ResourceOptions(import_="nope#1"))')
    result = up(toys)
    assert result.exit_code == 1
    assert result.errors[0] == "resource 'nope#1' does not exist"


def test_an_import_that_differs_is_updated(playground: Playground) -> None:
    toys = playground('Thing("z", {"name": "z", "note": "mine"}, pulumi.ResourceOptions(import_="z#7"))', form="native")
    thing = {"name": "z", "note": "theirs", "status": "running", "secretOut": "q"}
    (toys.service / "world.json").write_text(json.dumps({"things": {"z#7": thing}, "counts": {}}))
    result = up(toys)
    assert (result.exit_code, result.changes) == (0, {"create": 1, "import": 1, "update": 1})
    assert toys.world()["z#7"]["note"] == "mine"


def test_a_resource_only_looked_at_becomes_managed_and_the_other_way_round(playground: Playground) -> None:
    get = 'Thing("g", {{"name": "a"}}, pulumi.ResourceOptions(id="{}"))'
    toys = playground(get.format("a#1"), form="native")
    things = {f"a#{number}": {"name": "a", "status": "running", "secretOut": "q"} for number in (1, 2)}
    (toys.service / "world.json").write_text(json.dumps({"things": things, "counts": {"a": 2}}))
    assert up(toys).changes == {"create": 1}
    write(toys, 'Thing("g", {"name": "a"})')
    result = up(toys)
    assert (result.exit_code, result.changes) == (0, {"replace": 1, "same": 1})
    assert set(toys.world()) == {"a#1", "a#2", "a#3"}  # what was only looked at is not deleted
    write(toys, get.format("a#2"))
    result = up(toys)
    assert (result.exit_code, result.changes) == (0, {"replace": 1, "same": 1})
    assert set(toys.world()) == {"a#1", "a#2"}  # what was managed is
    (state,) = [item for item in toys.state()["resources"] if item["name"] == "g"]
    assert (state["id"], state["external"]) == ("a#2", True)


def test_what_is_not_ready_is_looked_at_and_imported_all_the_same(playground: Playground) -> None:
    toys = playground('Thing("g", {"name": "a"}, pulumi.ResourceOptions(id="a#1"))', form="native")
    thing = {"name": "a", "size": "s", "status": "starting", "secretOut": "q"}
    (toys.service / "world.json").write_text(json.dumps({"things": {"a#1": thing}, "counts": {"a": 1}}))
    (toys.service / "faults.json").write_text('{"read:a#1": "partial"}')
    result = up(toys)
    assert result.exit_code == 1
    assert result.errors[0] == "1 error occurred:\n\t* still provisioning"
    (state,) = [item for item in toys.state()["resources"] if item["name"] == "g"]
    assert state["initErrors"] == ["still provisioning"]
    write(toys, 'Thing("z", {"name": "a", "size": "s"}, pulumi.ResourceOptions(import_="a#1"))')
    assert up(toys).exit_code == 0
    # Once imported by its id, it may not be replaced as long as the program says so.
    (toys.service / "faults.json").write_text("{}")
    write(toys, 'Thing("z", {"name": "a", "size": "L"}, pulumi.ResourceOptions(import_="a#1"))')
    assert toys.stack().preview().exit_code == 0
    result = up(toys)
    assert result.exit_code == 1
    assert "may not be replaced" in result.errors[0]
    assert list(toys.world()) == ["a#1"]


def test_who_is_deleted_with_a_replaced_resource_is_replaced_too(playground: Playground) -> None:
    source = """
a = Thing("a", {{"name": "a", "size": "{}", "note": "dbr"}})
Thing("b", {{"name": "b"}}, pulumi.ResourceOptions(deleted_with=a, depends_on=[a]))
"""
    toys = playground(source.format("s"))
    up(toys)
    write(toys, source.format("L"))
    (toys.service / "calls.jsonl").unlink()
    result = up(toys)
    assert (result.exit_code, result.changes) == (0, {"replace": 2, "same": 1})
    assert [call["id"] for call in toys.calls() if call["method"] == "Delete"] == ["a#1"]


def test_functions_of_a_plugin(playground: Playground) -> None:
    toys = playground('pulumi.export("price", pulumi.runtime.invoke("toy:index:getPrice", {"size": "s"}).value["price"])', form="native")
    assert up(toys).outputs == {"price": "4.90"}
    write(toys, 'pulumi.runtime.invoke("toy:index:getPrice", {"size": "bad"})')
    result = up(toys)
    assert result.exit_code == 1
    assert "size must not be bad" in result.errors[0]


def test_a_refused_provider_configuration(playground: Playground) -> None:
    toys = playground('toy = Toy("p", {"name": "bad"})', form="native")
    plugin = toys.project / "toykit" / "plugin.py"
    plugin.write_text(
        plugin.read_text().replace(
            "return provider_pb2.CheckResponse(inputs=request.news)\n",
            'return provider_pb2.CheckResponse(failures=[provider_pb2.CheckFailure(reason="no key")])\n',
        )
    )
    assert up(toys).errors == ["pulumi:providers:toy resource 'p' has a problem: no key"]


def test_a_provider_configured_with_an_unknown_value_is_asked_nothing_in_a_preview(playground: Playground) -> None:
    source = """
first = Toy("first", {"apiKey": "k"})
key = Thing("key", {"name": "key"}, pulumi.ResourceOptions(provider=first))
second = Toy("second", {"apiKey": key.id})
Thing("a", {"name": "a"}, pulumi.ResourceOptions(provider=second))
"""
    toys = playground(source, form="native")
    assert toys.stack().preview().changes == {"create": 5}
    assert [call["name"] for call in toys.calls() if call["method"] == "Create"] == ["key"]
    assert up(toys).changes == {"create": 5}
    assert up(toys).changes == {"same": 5}


def test_other_options_of_resources_are_saved(playground: Playground) -> None:
    source = """
a = Thing("a", {"name": "a"})
timeouts = pulumi.CustomTimeouts(create="1h30m")
Thing("b", {"name": "b"}, pulumi.ResourceOptions(replace_with=[a], custom_timeouts=timeouts, hide_diffs=["note"]))
"""
    toys = playground(source)
    assert up(toys).exit_code == 0
    (state,) = [state for state in toys.stack().snapshot().resources if state.name == "b"]
    assert [urn.rsplit("::", 1)[-1] for urn in state.replace_with] == ["a"]
    assert state.custom_timeouts == {"create": 5400}
    write(toys, source.replace('Thing("a", {"name": "a"})', 'Thing("a", {"name": "a", "size": "L"})'))
    assert sorted(names(up(toys), "replace")) == ["a", "b"]


# Targets.


def test_targets_that_do_not_fit(playground: Playground) -> None:
    toys = playground(TWO)
    type = "urn:pulumi:dev::toys::pulumi-python:dynamic/toy:Thing"
    result = toys.stack().up(targets=(f"{type}::b",))
    assert result.exit_code == 1
    assert f"Resource '{type}::b' depends on '{type}::a'" in result.errors[0]
    assert toys.world() == {}
    result = toys.stack().up(targets=(f"{type}::nobody",))
    assert result.errors[0] == f"Target '{type}::nobody' could not be found in the stack."
    up(toys)
    result = toys.stack().destroy(targets=(f"{type}::a",))
    assert result.exit_code == 1
    assert "--target-dependents" in result.errors[0]
    assert set(toys.world()) == {"a#1", "b#1"}
    assert toys.stack().destroy(targets=(f"{type}::a",), target_dependents=True).changes == {"delete": 2, "same": 1}
    assert toys.world() == {}


def test_a_target_leaves_alone_what_the_program_forgot(playground: Playground) -> None:
    toys = playground(TWO)
    up(toys)
    write(toys, 'Thing("b", {"name": "b", "note": "new"})')
    type = "urn:pulumi:dev::toys::pulumi-python:dynamic/toy:Thing"
    assert toys.stack().up(targets=("**::other*",)).changes == {"same": 3}
    assert set(toys.world()) == {"a#1", "b#1"}
    result = toys.stack().refresh(targets=(f"{type}::a",))
    assert names(result, "refresh") == ["a"]


# Destroying and refreshing with the program.


def test_destroy_with_the_program_uses_its_configuration(playground: Playground) -> None:
    toys = playground(TWO)
    toys.stack().set_config("toy:apiKey", "k1", secret=True)
    up(toys)
    toys.stack().set_config("toy:apiKey", "k2", secret=True)
    (toys.service / "calls.jsonl").unlink()
    result = toys.stack().destroy(run_program=True)
    assert (result.exit_code, toys.world(), toys.state()["resources"]) == (0, {}, [])
    assert toys.calls()[0] == {"method": "Configure", "key": "k2"}
    assert methods(toys).count("Delete") == 2
    # A resource that does not exist is not made for being destroyed.
    result = toys.stack().destroy(run_program=True)
    assert (result.exit_code, toys.world()) == (0, {})
    assert "Create" not in methods(toys)


def test_refresh_with_the_program_finds_what_is_gone(playground: Playground) -> None:
    toys = playground(TWO)
    up(toys)
    world = json.loads((toys.service / "world.json").read_text())
    del world["things"]["a#1"]
    (toys.service / "world.json").write_text(json.dumps(world))
    result = toys.stack().refresh(run_program=True)
    assert result.exit_code == 0
    assert {item["name"]: item.get("dependencies") for item in toys.state()["resources"]} == {"toys-dev": None, "b": None}
    write(toys, 'Thing("b", {"name": "b"})')
    # What the program does not mention is refreshed too, and never deleted by a refresh.
    write(toys, "")
    result = toys.stack().refresh(run_program=True)
    assert names(result, "refresh") == ["b"]
    assert list(toys.world()) == ["b#1"]


def test_a_resource_written_by_an_unknown_provider(playground: Playground) -> None:
    toys = playground(TWO)
    up(toys)
    data = toys.stack().export()
    data["deployment"]["resources"] = [item for item in data["deployment"]["resources"] if "providers" not in item["type"]]
    toys.stack().import_state(data)
    result = toys.stack().refresh()
    assert result.exit_code == 1
    assert "could not find provider" in result.errors[0]


# State.


def test_export_and_import(playground: Playground) -> None:
    toys = playground(TWO)
    up(toys)
    stack = toys.stack()
    shown = stack.export(show_secrets=True)
    assert "once-a#1" in json.dumps(shown)
    assert "once-a#1" not in json.dumps(stack.export())
    stack.import_state(shown)
    assert "once-a#1" not in stack.backend.stack_file("dev").read_text()
    assert up(toys).changes == {"same": 3}
    with pytest.raises(ConfigurationError, match="another stack"):
        stack.import_state(json.loads(json.dumps(shown).replace("urn:pulumi:dev", "urn:pulumi:prod")))
    with pytest.raises(ConfigurationError, match="version 3"):
        stack.import_state({"version": 2})
    with pytest.raises(ConfigurationError, match="passphrase secrets only"):
        stack.import_state({"version": 3, "deployment": {"secrets_providers": {"type": "cloud"}}})


def test_state_under_another_salt_is_taken_over(playground: Playground) -> None:
    toys = playground(TWO)
    up(toys)
    # A checkout without the stack's config file: the salt comes back from the state.
    (toys.project / "Pulumi.dev.yaml").unlink()
    assert up(toys).changes == {"same": 3}
    salt = (toys.project / "Pulumi.dev.yaml").read_text()
    # Another salt in the file: the state is read with its own and written with the new one.
    (toys.project / "Pulumi.dev.yaml").unlink()
    other = Stack(toys.project, "other", environ=toys.environ)
    other.init()
    shutil.copy(toys.project / "Pulumi.other.yaml", toys.project / "Pulumi.dev.yaml")
    assert up(toys).changes == {"same": 3}
    assert (toys.project / "Pulumi.dev.yaml").read_text() != salt
    assert "once-a#1" in json.dumps(toys.stack().export(show_secrets=True))


def test_a_wrong_passphrase_touches_nothing(playground: Playground) -> None:
    toys = playground(TWO)
    up(toys)
    saved = toys.stack().backend.stack_file("dev").read_text()
    toys.environ["PULUMI_CONFIG_PASSPHRASE"] = "wrong"
    with pytest.raises(ConfigurationError, match="incorrect passphrase"):
        up(toys)
    assert toys.stack().backend.stack_file("dev").read_text() == saved


# Interruptions.


def start(toys: Toys, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pulumi_hosting.cli", "offline", *arguments, "--stack", "dev", "--yes", "--skip-preview"],
        cwd=toys.project,
        env={**toys.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent.parent), str(toys.project)])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # As in a terminal: where the tests run as a script's background job, SIGINT is ignored and that would be inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def offline(toys: Toys, *arguments: str) -> str:
    """What the command printed; it must end well."""
    process = start(toys, *arguments)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    return output


def wait_for(toys: Toys, method: str) -> None:
    deadline = time.monotonic() + 60
    while method not in methods(toys) and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_lets_a_running_step_finish_and_begins_nothing_new(playground: Playground, sign: signal.Signals) -> None:
    toys = playground(TWO)
    (toys.service / "faults.json").write_text('{"create:a": "sleep:1.5"}')
    process = start(toys, "up")
    wait_for(toys, "Create")
    process.send_signal(sign)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 8, output
    assert "update canceled" in output
    assert "Traceback" not in output
    assert [item["name"] for item in toys.state()["resources"]] == ["toys-dev", "a"]
    assert list(toys.world()) == ["a#1"]
    assert up(toys).changes == {"create": 1, "same": 2}


def test_a_kill_at_any_time_leaves_a_state_that_can_be_read(playground: Playground, tmp_path: Path) -> None:
    toys = playground("for i in range(12): Thing(f't{i}', {'name': f't{i}'})")
    process = start(toys, "up", "--parallel", "3")
    wait_for(toys, "Create")
    orphans = children(process.pid)
    process.kill()
    process.communicate(timeout=60)
    end(orphans)
    snapshot = toys.stack().snapshot()
    assert all(operation.type == "creating" for operation in snapshot.pending)
    toys.stack().cancel()
    result = toys.stack().refresh(clear_pending_creates=True)
    assert result.exit_code == 0
    assert up(toys).exit_code == 0
    assert {f"t{i}" for i in range(12)} <= {item["name"] for item in toys.state()["resources"]}


def test_the_program_of_a_killed_engine_ends_its_provider_lives_on(playground: Playground) -> None:
    toys = playground('Thing("a", {"name": "a"})')
    toys.environ["PULUMI_PYTHON_CMD"] = sys.executable
    (toys.service / "faults.json").write_text('{"create:a": "sleep:3"}')
    process = start(toys, "up")
    wait_for(toys, "Create")
    commands = {leader: Path(f"/proc/{leader}/cmdline").read_text() for leader in children(process.pid)}
    process.kill()
    process.communicate(timeout=60)
    (program,) = [leader for leader, command in commands.items() if "run_program.py" in command]
    (provider,) = [leader for leader, command in commands.items() if "pulumi.dynamic" in command]
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (_runs(program) or not toys.world()):
        time.sleep(0.05)
    assert not _runs(program)
    assert _runs(provider)
    assert list(toys.world()) == ["a#1"]
    end([provider])


def test_destroy_is_refused_while_nothing_leads_to_what_a_killed_run_made(playground: Playground) -> None:
    """And what the refusal advises removes everything."""
    toys = playground('Thing("a", {"name": "a"})')
    (toys.service / "faults.json").write_text('{"create:a": "sleep:3"}')
    process = start(toys, "up")
    wait_for(toys, "Create")
    orphans = children(process.pid)
    process.kill()
    process.communicate(timeout=60)
    end(orphans)
    (toys.service / "faults.json").write_text("{}")
    stack = toys.stack()
    stack.cancel()
    before = stack.backend.stack_file("dev").read_bytes()
    for preview in (True, False):
        with pytest.raises(UnfinishedCreates, match="toy:Thing a; what it created may exist") as refused:
            toys.stack().destroy(preview_only=preview)
        assert "Next: run `pulumi-hosting offline up`" in str(refused.value)
        assert refused.value.exit_code == 1
    with pytest.raises(OfflineError, match=r"^an interrupted run was creating"):
        toys.stack().remove()
    looked = offline(toys, "refresh")
    assert "A refresh cannot find what they created. Next: run `pulumi-hosting offline up`" in looked
    assert toys.stack().destroy(targets=("urn:pulumi:dev::toys::x::y",)).exit_code != 0  # not refused: it is about something else
    stack.backend.stack_file("dev").write_bytes(before)
    assert "This run finds what was created." in offline(toys, "up")
    assert "interrupted" not in offline(toys, "up")
    assert toys.stack().destroy().exit_code == 0
    assert toys.world() == {}
    assert toys.stack().destroy().exit_code == 0  # and it is not asked for again
    toys.stack().remove()


def _runs(pid: int) -> bool:
    """Whether a process still does something: one that nobody has waited for is a zombie."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[-1].split()[0] != "Z"


# The other engine.


@pytest.mark.skipif(shutil.which("pulumi") is None, reason="Pulumi's CLI is not on PATH")
def test_pulumi_reads_what_the_offline_engine_wrote_and_the_other_way_round(playground: Playground, tmp_path: Path) -> None:
    toys = playground(TWO + 'pulumi.export("once", a.secretOut)')
    toys.environ |= {
        "PULUMI_HOME": str(tmp_path / "home"),
        "PULUMI_BACKEND_URL": (toys.project / ".pulumi-offline").as_uri(),
        "PULUMI_PYTHON_CMD": sys.executable,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }

    def pulumi(*arguments: str) -> str:
        command = ["pulumi", *arguments, "--stack", "dev", "--non-interactive"]
        done = subprocess.run(command, cwd=toys.project, env=toys.environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    up(toys)
    assert "once-a#1" in pulumi("stack", "export", "--show-secrets")
    pulumi("up", "--yes", "--skip-preview", "--expect-no-changes")
    assert up(toys, expect_no_changes=True).exit_code == 0
    pulumi("destroy", "--yes", "--skip-preview")
    assert up(toys).changes == {"create": 3}


@pytest.mark.parametrize("ignored", [False, True])
def test_a_provider_is_asked_to_end_in_a_way_it_hears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ignored: bool) -> None:
    """In a background job of a script SIGINT is ignored, and so it is in every process started from there."""
    script = tmp_path / "provider.py"
    first = "signal.signal(signal.SIGINT, signal.SIG_IGN)" if ignored else "pass"
    script.write_text(f"import signal, time\n{first}\nprint(4711, flush=True)\ntime.sleep(600)\n", encoding="utf-8")
    if ignored:
        monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_IGN)
    started = PluginProcess("toy", [sys.executable, str(script)], tmp_path, dict(os.environ), lambda line, is_error: None)
    assert started.port == 4711
    started.stop(timeout=60)
    assert started._process.returncode not in (None, 0, -signal.SIGKILL)
