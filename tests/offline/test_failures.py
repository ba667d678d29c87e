"""Programs and providers that fail."""

import json

import pytest

from pulumi_hosting.offline.display.engine_events import Event
from pulumi_hosting.offline.engine import program_process
from pulumi_hosting.offline.generator import deletions
from pulumi_hosting.offline.generator.decisions import Decisions
from pulumi_hosting.offline.model.property_values import UNKNOWN_STRING
from pulumi_hosting.offline.storage.backend import Backend
from tests.offline.conftest import MakeProject, up


def test_a_failing_program_shows_its_own_traceback(make_project: MakeProject) -> None:
    project = make_project(
        'Thing("a", {"name": "a"})\ndef helper():\n    raise ValueError("no such plan")\nhelper()'
    )
    result = up(project)
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
def test_the_error_of_a_program_is_reported(make_project: MakeProject, source: str, problem: str) -> None:
    result = up(make_project(source))
    assert result.exit_code == 1
    assert problem in "\n".join(result.errors)


def test_a_missing_program(make_project: MakeProject) -> None:
    project = make_project("")
    (project.directory / "__main__.py").unlink()
    assert up(project).errors == [
        f"unable to find main python program `__main__.py` in `{project.directory}`"
    ]


def test_a_missing_python(make_project: MakeProject) -> None:
    project = make_project("")
    project.environ["PULUMI_PYTHON_CMD"] = str(project.directory / "nopython")
    result = up(project)
    assert result.exit_code == 1
    assert "PULUMI_PYTHON_CMD" in result.errors[0]


def test_a_program_may_be_a_file(make_project: MakeProject) -> None:
    project = make_project("import toykit\npulumi.export('main', __name__)")
    (project.directory / "__main__.py").rename(project.directory / "app.py")
    (project.directory / "Pulumi.yaml").write_text("name: toys\nruntime: python\nmain: app.py\n")
    assert up(project).outputs == {"main": "__main__"}


def test_what_a_program_can_read(make_project: MakeProject) -> None:
    project = make_project(
        "config = pulumi.Config()\n"
        "pulumi.export('asked', [pulumi.get_project(), pulumi.get_stack(), pulumi.get_organization(), "
        "config.get('size')])\n"
        "pulumi.export('key', config.require_secret('key'))\n"
        "pulumi.export('dry', pulumi.runtime.is_dry_run())\n"
        "pulumi.log.info('hello'); pulumi.log.warn('careful'); print('plain'); pulumi.log.debug('quiet')"
    )
    project.stack().set_config("size", "large")
    project.stack().set_config("key", "hush", secret=True)
    events: list[Event] = []
    result = project.stack(events.append).up()
    assert result.outputs == {
        "asked": ["toys", "dev", "organization", "large"],
        "key": "[secret]",
        "dry": False,
    }
    said = {
        (event["diagnosticEvent"]["severity"], event["diagnosticEvent"]["message"])
        for event in events
        if "diagnosticEvent" in event
    }
    assert {("info", "hello\n"), ("warning", "careful\n"), ("info", "plain\n"), ("debug", "quiet\n")} <= said
    assert "hush" not in json.dumps(events)
    assert "hush" not in project.stack().backend.stack_file("dev").read_text()
    assert project.stack().outputs(show_secrets=True)["key"] == "hush"
    assert project.stack().preview().outputs["dry"] is True


def test_a_refused_secret_is_not_printed(make_project: MakeProject) -> None:
    project = make_project('Thing("a", {"name": pulumi.Output.secret("bad")})')
    result = up(project)
    assert result.errors == [
        (
            "pulumi-python:dynamic/toy:Thing resource 'a': property name value [secret] has a "
            "problem: name must not be bad"
        )
    ]


def test_an_unsupported_feature_is_one_line(make_project: MakeProject) -> None:
    project = make_project(
        'class Box(pulumi.ComponentResource): ...\nBox("a:b:Box", "box", {}, None, remote=True)'
    )
    result = up(project)
    assert result.exit_code == 1
    assert result.errors == [
        (
            "the offline engine does not support components that live in a plugin; run this "
            "program with Pulumi's own CLI"
        )
    ]


def test_a_stack_reference_is_not_supported(make_project: MakeProject) -> None:
    result = up(make_project('pulumi.StackReference("organization/other/dev")'))
    assert result.exit_code == 1
    assert len(result.errors) == 1


def test_a_provider_cannot_be_read(make_project: MakeProject) -> None:
    result = up(
        make_project(
            'pulumi.ProviderResource("toy", "old", {}, opts=pulumi.ResourceOptions(id="x"))', form="native"
        )
    )
    assert result.exit_code == 1
    assert result.errors[0].startswith("the offline engine reads no providers: urn:pulumi:dev::toys::")


def test_a_missing_plugin(make_project: MakeProject) -> None:
    project = make_project('pulumi.CustomResource("elsewhere:index:Thing", "a", {})')
    result = up(project)
    assert result.errors[0].startswith("no resource plugin 'pulumi-resource-elsewhere' found on PATH")


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("#!/bin/sh\necho oops >&2\nexit 1\n", "did not start"),
        ("#!/bin/sh\necho hello\nsleep 5\n", "'hello' instead of a port"),
    ],
)
def test_a_plugin_that_does_not_start(make_project: MakeProject, script: str, problem: str) -> None:
    project = make_project('Thing("a", {"name": "a"})', form="native")
    plugin = project.directory.parent / "bin" / "pulumi-resource-toy"
    plugin.write_text(script)
    result = up(project)
    assert result.exit_code == 1
    assert problem in result.errors[0]


def test_a_provider_that_exits(make_project: MakeProject) -> None:
    project = make_project('Thing("a", {"name": "a"})', form="native")
    plugin = project.directory / "toykit" / "plugin.py"
    plugin.write_text(
        plugin.read_text().replace(
            '        fault = faulty(context, f"create:',
            '        import os; os._exit(9)\n        fault = faulty(context, f"create:',
        )
    )
    result = up(project)
    assert result.exit_code == 1
    assert "went away" in result.errors[0]
    assert project.state()["pending"] == []


@pytest.mark.parametrize("form", ["dynamic", "native"])
def test_a_provider_that_answers_an_unknown_where_the_real_thing_exists(
    make_project: MakeProject, form: str
) -> None:
    project = make_project('Thing("a", {"name": "a"})', form=form)
    service = project.directory / "toykit" / "service.py"
    service.write_text(
        service.read_text().replace('f"once-{id}",', f'f"once-{{id}}", "sizes": [{UNKNOWN_STRING!r}],')
    )
    result = up(project)
    assert result.errors[0].endswith("answered an unexpected unknown property value")
    assert result.exit_code == 1


def test_a_create_under_way_is_saved_when_another_fails(
    make_project: MakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`a` fails while `b` is being created; `b` is created after the program was ended."""
    monkeypatch.setattr(program_process, "END_TIMEOUT", 0.1)
    project = make_project('Thing("a", {"name": "a"})\nThing("b", {"name": "b"})')
    project.set_faults(create_a="hold:a,raise", create_b="hold:b")

    def release(event: Event) -> None:
        if "resourcePreEvent" in event and event["resourcePreEvent"]["metadata"]["urn"].endswith("::b"):
            project.release("a")
        if "resOpFailedEvent" in event:
            project.release("b")

    assert project.stack(release).up(parallel=4).exit_code == 1
    assert list(project.things()) == ["b#1"]
    assert [item["name"] for item in project.state()["resources"]] == ["toys-dev", "b"]
    assert project.state()["pending"] == []


def test_a_state_that_cannot_be_saved(make_project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(backend: Backend, stack: str, deployment: str | None) -> None:
        raise OSError(28, "No space left on device")

    project = make_project('Thing("a", {"name": "a"})')
    monkeypatch.setattr(Backend, "write", full)
    result = up(project)
    assert result.exit_code == 1
    assert "could not be saved" in result.errors[0]
    assert "No space left on device" in result.errors[0]
    assert project.things() == {}


def test_an_internal_error_is_one_line_without_values(
    make_project: MakeProject, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise LookupError("a value of the program")

    project = make_project('Thing("a", {"name": "a"})')
    monkeypatch.setattr(Decisions, "find_old", broken)
    (message,) = up(project).errors
    assert message == (
        "internal error of the offline engine (LookupError). Next: run again with -v 9 for details"
    )
    monkeypatch.undo()
    up(project)
    monkeypatch.setattr(deletions, "deletions", broken)
    assert project.stack().destroy().errors == [message]
    assert "a value of the program" not in "".join(capfd.readouterr())
