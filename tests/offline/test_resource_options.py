"""Options of resources that the recordings do not have."""

import json

import pytest

from pulumi_hosting.offline.model.property_values import SecretValue
from tests.offline.conftest import MakeProject, called, methods, names, up, write
from tests.offline.replay import ToyProject


def test_components_and_their_outputs(make_project: MakeProject) -> None:
    source = """
class Box(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("toy:index:Box", name, {"size": "s"}, opts)
        self.inner = Thing(f"{name}-inner", {"name": "i"}, pulumi.ResourceOptions(parent=self))
        self.register_outputs({"id": self.inner.id})
Box("box")
"""
    project = make_project(source)
    assert up(project).changes == {"create": 3}
    states = {state.name: state for state in project.stack().snapshot().resources}
    assert states["box"].outputs == {"id": "i#1"}
    assert (
        states["box-inner"].urn
        == "urn:pulumi:dev::toys::toy:index:Box$pulumi-python:dynamic/toy:Thing::box-inner"
    )
    assert up(project).changes == {"same": 3}
    # Renamed with an alias, its child comes along.
    write(
        project,
        source.replace(
            'Box("box")', 'Box("case", pulumi.ResourceOptions(aliases=[pulumi.Alias(name="box")]))'
        ),
    )
    result = up(project)
    assert result.changes == {"same": 3}
    assert {state.name for state in project.stack().snapshot().resources} >= {"case", "case-inner"}
    result = project.stack().destroy()
    assert names(result, "delete") == ["case-inner", "case", "toys-dev"]


@pytest.mark.slow
def test_the_engine_compares_where_the_provider_does_not(make_project: MakeProject) -> None:
    project = make_project(
        'Thing("a", {"name": "a", "size": "s"}, pulumi.ResourceOptions(replace_on_changes=["note"]))'
    )
    module = project.directory / "toykit" / "dyn.py"
    module.write_text(module.read_text().replace("changes=bool(changed),", "changes=None,"))
    up(project)
    assert up(project).changes == {"same": 2}
    write(
        project,
        'Thing("a", {"name": "a", "size": "s", "note": "n"}, '
        'pulumi.ResourceOptions(replace_on_changes=["note"]))',
    )
    result = project.stack().preview()
    assert result.changes == {"replace": 1, "same": 1}
    assert [diffs for op, _, diffs in result.operations if op == "replace"] == [("note",)]


def test_a_replacement_trigger(make_project: MakeProject) -> None:
    project = make_project('Thing("a", {"name": "a"}, pulumi.ResourceOptions(replacement_trigger="one"))')
    up(project)
    assert up(project).changes == {"same": 2}
    write(project, 'Thing("a", {"name": "a"}, pulumi.ResourceOptions(replacement_trigger="two"))')
    assert up(project).changes == {"replace": 1, "same": 1}
    write(project, 'Thing("a", {"name": "a"})')
    assert up(project).changes == {"same": 2}
    write(project, 'Thing("a", {"name": "a"}, pulumi.ResourceOptions(replacement_trigger="one"))')
    assert up(project).changes == {"same": 2}


def test_delete_before_replace_whose_create_fails(make_project: MakeProject) -> None:
    source = 'Thing("a", {{"name": "a", "size": "{}"}}, pulumi.ResourceOptions(delete_before_replace=True))'
    project = make_project(source.format("s"))
    up(project)
    write(project, source.format("L"))
    project.set_faults(create_a="raise")
    assert up(project).exit_code == 1
    (state,) = [state for state in project.stack().snapshot().resources if state.name == "a"]
    assert state.pending_replacement
    assert project.things() == {}
    # It is gone: a refresh does not look for it, and the next run only makes the new one.
    assert project.stack().refresh().exit_code == 0
    project.set_faults()
    project.forget_calls()
    result = up(project)
    assert (result.exit_code, result.changes) == (0, {"replace": 1, "same": 1})
    assert "Delete" not in methods(project)
    assert list(project.things()) == ["a#2"]


@pytest.mark.slow
def test_a_resource_removed_while_its_replacement_is_pending(make_project: MakeProject) -> None:
    source = 'Thing("a", {{"name": "a", "size": "{}"}}, pulumi.ResourceOptions(delete_before_replace=True))'
    project = make_project(source.format("s"))
    up(project)
    write(project, source.format("L"))
    project.set_faults(create_a="raise")
    up(project)
    write(project, "")
    assert up(project).exit_code == 0
    assert [state["name"] for state in project.state()["resources"]] == ["toys-dev"]


def test_a_protected_dependent_stops_a_delete_first_replacement(make_project: MakeProject) -> None:
    source = """
a = Thing("a", {{"name": "a", "size": "{}", "note": "dbr"}})
Thing("b", {{"name": "b", "size": a.id}}, pulumi.ResourceOptions(protect=True))
"""
    project = make_project(source.format("s"))
    up(project)
    write(project, source.format("L"))
    result = up(project)
    assert result.exit_code == 1
    assert "as part of replacing" in result.errors[0]
    assert set(project.things()) == {"a#1", "b#1"}


@pytest.mark.slow
def test_an_existing_object_is_imported(make_project: MakeProject) -> None:
    project = make_project(
        'Thing("z", {"name": "z", "size": "s"}, pulumi.ResourceOptions(import_="z#7"))', form="native"
    )
    thing = {"name": "z", "size": "s", "status": "running", "secretOut": "q"}
    (project.service / "world.json").write_text(json.dumps({"things": {"z#7": thing}, "counts": {}}))
    result = up(project)
    assert (result.exit_code, result.changes) == (0, {"create": 1, "import": 1})
    assert up(project).changes == {"same": 2}
    assert project.things() == {"z#7": thing}
    write(project, 'Thing("y", {"name": "y"}, pulumi.ResourceOptions(import_="nope#1"))')
    result = up(project)
    assert result.exit_code == 1
    assert result.errors[0] == "resource 'nope#1' does not exist"


def test_an_import_that_differs_is_updated(make_project: MakeProject) -> None:
    project = make_project(
        'Thing("z", {"name": "z", "note": "mine"}, pulumi.ResourceOptions(import_="z#7"))', form="native"
    )
    thing = {"name": "z", "note": "theirs", "status": "running", "secretOut": "q"}
    (project.service / "world.json").write_text(json.dumps({"things": {"z#7": thing}, "counts": {}}))
    result = up(project)
    assert (result.exit_code, result.changes) == (0, {"create": 1, "import": 1, "update": 1})
    assert project.things()["z#7"]["note"] == "mine"


@pytest.mark.slow
def test_a_read_resource_becomes_managed_and_back(make_project: MakeProject) -> None:
    get = 'Thing("g", {{"name": "a"}}, pulumi.ResourceOptions(id="{}"))'
    project = make_project(get.format("a#1"), form="native")
    things = {f"a#{number}": {"name": "a", "status": "running", "secretOut": "q"} for number in (1, 2)}
    (project.service / "world.json").write_text(json.dumps({"things": things, "counts": {"a": 2}}))
    assert up(project).changes == {"create": 1}
    write(project, 'Thing("g", {"name": "a"})')
    result = up(project)
    assert (result.exit_code, result.changes) == (0, {"replace": 1, "same": 1})
    assert set(project.things()) == {"a#1", "a#2", "a#3"}  # what was only looked at is not deleted
    write(project, get.format("a#2"))
    result = up(project)
    assert (result.exit_code, result.changes) == (0, {"replace": 1, "same": 1})
    assert set(project.things()) == {"a#1", "a#2"}  # what was managed is
    (state,) = [item for item in project.state()["resources"] if item["name"] == "g"]
    assert (state["id"], state["external"]) == ("a#2", True)


@pytest.mark.slow
def test_an_object_that_is_not_ready_can_be_read_and_imported(make_project: MakeProject) -> None:
    project = make_project('Thing("g", {"name": "a"}, pulumi.ResourceOptions(id="a#1"))', form="native")
    thing = {"name": "a", "size": "s", "status": "starting", "secretOut": "q"}
    (project.service / "world.json").write_text(json.dumps({"things": {"a#1": thing}, "counts": {"a": 1}}))
    project.set_faults(**{"read_a#1": "partial"})
    result = up(project)
    assert result.exit_code == 1
    assert result.errors[0] == "1 error occurred:\n\t* still provisioning"
    (state,) = [item for item in project.state()["resources"] if item["name"] == "g"]
    assert state["initErrors"] == ["still provisioning"]
    write(project, 'Thing("z", {"name": "a", "size": "s"}, pulumi.ResourceOptions(import_="a#1"))')
    assert up(project).exit_code == 0
    # Once imported by its id, it may not be replaced as long as the program says so.
    project.set_faults()
    write(project, 'Thing("z", {"name": "a", "size": "L"}, pulumi.ResourceOptions(import_="a#1"))')
    assert project.stack().preview().exit_code == 0
    result = up(project)
    assert result.exit_code == 1
    assert "may not be replaced" in result.errors[0]
    assert list(project.things()) == ["a#1"]


def test_deleted_with_a_replaced_resource_is_replaced(make_project: MakeProject) -> None:
    source = """
a = Thing("a", {{"name": "a", "size": "{}", "note": "dbr"}})
Thing("b", {{"name": "b"}}, pulumi.ResourceOptions(deleted_with=a, depends_on=[a]))
"""
    project = make_project(source.format("s"))
    up(project)
    write(project, source.format("L"))
    project.forget_calls()
    result = up(project)
    assert (result.exit_code, result.changes) == (0, {"replace": 2, "same": 1})
    assert [call["id"] for call in project.calls() if call["method"] == "Delete"] == ["a#1"]


def test_functions_of_a_plugin(make_project: MakeProject) -> None:
    project = make_project(
        'pulumi.export("price", pulumi.runtime.invoke("toy:index:getPrice", {"size": "s"}).value["price"])',
        form="native",
    )
    assert up(project).outputs == {"price": "4.90"}
    write(project, 'pulumi.runtime.invoke("toy:index:getPrice", {"size": "bad"})')
    result = up(project)
    assert result.exit_code == 1
    assert "size must not be bad" in result.errors[0]


def test_a_refused_provider_configuration(make_project: MakeProject) -> None:
    project = make_project('toy = Toy("p", {"name": "bad"})', form="native")
    plugin = project.directory / "toykit" / "plugin.py"
    plugin.write_text(
        plugin.read_text().replace(
            "return provider_pb2.CheckResponse(inputs=request.news)\n",
            'return provider_pb2.CheckResponse(failures=[provider_pb2.CheckFailure(reason="no key")])\n',
        )
    )
    assert up(project).errors == ["pulumi:providers:toy resource 'p' has a problem: no key"]


def test_a_provider_with_unknown_configuration_is_not_called_in_a_preview(make_project: MakeProject) -> None:
    source = """
first = Toy("first", {"apiKey": "k"})
key = Thing("key", {"name": "key"}, pulumi.ResourceOptions(provider=first))
second = Toy("second", {"apiKey": key.id})
Thing("a", {"name": "a"}, pulumi.ResourceOptions(provider=second))
"""
    project = make_project(source, form="native")
    assert project.stack().preview().changes == {"create": 5}
    assert [call["name"] for call in project.calls() if call["method"] == "Create"] == ["key"]
    assert up(project).changes == {"create": 5}
    assert up(project).changes == {"same": 5}


def test_other_options_of_resources_are_saved(make_project: MakeProject) -> None:
    source = """
a = Thing("a", {"name": "a"})
timeouts = pulumi.CustomTimeouts(create="1h30m")
options = pulumi.ResourceOptions(replace_with=[a], custom_timeouts=timeouts, hide_diffs=["note"])
Thing("b", {"name": "b"}, options)
"""
    project = make_project(source)
    assert up(project).exit_code == 0
    (state,) = [state for state in project.stack().snapshot().resources if state.name == "b"]
    assert [urn.rsplit("::", 1)[-1] for urn in state.replace_with] == ["a"]
    assert state.custom_timeouts == {"create": 5400}
    write(project, source.replace('Thing("a", {"name": "a"})', 'Thing("a", {"name": "a", "size": "L"})'))
    assert sorted(names(up(project), "replace")) == ["a", "b"]


# Resources deleted with another.

DELETED_WITH = """
a = Thing("a", {{"name": "a", "size": "{}"}})
b = Thing("b", {{"name": "b"}}, pulumi.ResourceOptions(deleted_with=a))
c = Thing("c", {{"name": "c", "note": a.id}}, pulumi.ResourceOptions(deleted_with=a))
"""


@pytest.fixture
def together(make_project: MakeProject) -> ToyProject:
    project = make_project(DELETED_WITH.format("s"), form="native")
    assert project.stack().up().exit_code == 0
    project.forget_calls()
    return project


def test_a_resource_deleted_with_another_is_not_deleted_by_its_provider(together: ToyProject) -> None:
    result = together.stack().destroy()
    assert (result.exit_code, result.changes) == (0, {"delete": 4})
    assert called(together, "Delete") == ["a#1"]


@pytest.mark.slow
def test_deleted_with_a_removed_resource(together: ToyProject) -> None:
    write(together, DELETED_WITH.format("s").replace("c = Thing", "#"))
    assert together.stack().up().changes == {"delete": 1, "same": 3}
    assert called(together, "Delete") == ["c#1"]  # alone: no other resource is deleted with it
    together.forget_calls()
    write(together, "")
    assert together.stack().up().changes["delete"] >= 2
    assert called(together, "Delete") == ["a#1"]


@pytest.mark.slow
def test_deleted_with_a_resource_replaced_create_first(together: ToyProject) -> None:
    write(together, DELETED_WITH.format("L"))
    result = together.stack().up()
    assert (result.exit_code, result.changes.get("replace")) == (0, 3)
    assert called(together, "Delete") == ["a#1"]
    assert {"a#2", "b#2", "c#2"} <= set(together.things())


@pytest.mark.slow
def test_deleted_with_a_resource_whose_deletion_fails(together: ToyProject) -> None:
    """Who is deleted with it has left the state already, as in Pulumi; the next run is asked for it again."""
    together.set_faults(**{"delete_a#1": "raise"})
    assert together.stack().destroy().exit_code == 1
    assert [item["name"] for item in together.state()["resources"] if item["name"] in "abc"] == ["a"]
    together.set_faults()
    together.forget_calls()
    assert together.stack().up().changes["create"] == 2
    assert together.stack().destroy().exit_code == 0
    assert called(together, "Delete") == ["a#1"]


# Transforms.

TRANSFORMS = """
class Box(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("toy:index:Box", name, {}, opts)

def noted(text):
    def change(args):
        if args.type_.endswith(":Thing"):
            props = {**args.props, "note": args.props.get("note", "") + text}
            return pulumi.ResourceTransformResult(props, args.opts)
    return change

pulumi.runtime.register_resource_transform(noted("s"))
outer = Box("outer", pulumi.ResourceOptions(transforms=[noted("o")]))
inner = Box("inner", pulumi.ResourceOptions(parent=outer, transforms=[noted("i")]))
Thing("a", {"name": "a"}, pulumi.ResourceOptions(parent=inner, transforms=[noted("1"), noted("2")]))
pulumi.runtime.register_resource_transform(noted("t"))
Thing("b", {"name": "b"})
"""


@pytest.mark.parametrize("form", ["native", pytest.param("dynamic", marks=[pytest.mark.slow])])
def test_transforms_run_in_the_order_of_pulumi(make_project: MakeProject, form: str) -> None:
    project = make_project(TRANSFORMS, form=form)
    assert up(project).changes == {"create": 5}
    notes = {thing["name"]: thing["note"] for thing in project.things().values()}
    assert notes == {"a": "12ios", "b": "st"}
    assert up(project).changes == {"same": 5}


def test_a_transform_changes_options(make_project: MakeProject) -> None:
    project = make_project("""
def kept(args):
    more = pulumi.ResourceOptions(
        protect=True, retain_on_delete=True, ignore_changes=["note"], delete_before_replace=True,
        additional_secret_outputs=["status"], aliases=[pulumi.Alias(name="old")], depends_on=[a],
        custom_timeouts=pulumi.CustomTimeouts(create="7m"), deleted_with=a, replace_on_changes=["size"],
    )
    return pulumi.ResourceTransformResult(args.props, pulumi.ResourceOptions.merge(args.opts, more))

a = Thing("a", {"name": "a"})
Thing("b", {"name": "b"}, pulumi.ResourceOptions(transforms=[kept], depends_on=[a]))
""")
    assert up(project).exit_code == 0
    (state,) = [state for state in project.stack().snapshot().resources if state.name == "b"]
    (first,) = [state.urn for state in project.stack().snapshot().resources if state.name == "a"]
    assert (state.protect, state.retain_on_delete, state.deleted_with) == (True, True, first)
    assert state.dependencies == [first]
    assert state.custom_timeouts == {"create": 420.0}
    assert "status" in state.additional_secret_outputs


def test_a_transform_sees_what_is_unknown_and_what_is_secret(make_project: MakeProject) -> None:
    project = make_project("""
import pathlib

def seen(args):
    if args.name == "b":
        outputs = [name for name, value in sorted(args.props.items()) if isinstance(value, pulumi.Output)]
        pathlib.Path("seen").write_text(str(outputs))
    return pulumi.ResourceTransformResult(args.props, args.opts)

pulumi.runtime.register_resource_transform(seen)
a = Thing("a", {"name": "a"})
Thing("b", {"name": "b", "note": a.id, "size": pulumi.Output.secret("s")})
""")
    result = project.stack().preview()
    assert (result.exit_code, result.changes) == (0, {"create": 3})
    assert (project.directory / "seen").read_text() == "['note', 'size']"
    assert up(project).exit_code == 0
    (b,) = [state for state in project.stack().snapshot().resources if state.name == "b"]
    assert (b.inputs["note"], b.inputs["size"]) == ("a#1", SecretValue("s"))
    assert up(project).changes == {"same": 3}


def test_a_transform_that_raises_fails_the_run(make_project: MakeProject) -> None:
    project = make_project("""
def wrong(args):
    raise ValueError("no such name")

Thing("a", {"name": "a"}, pulumi.ResourceOptions(transforms=[wrong]))
""")
    result = up(project)
    assert result.exit_code == 1
    assert any("no such name" in error for error in result.errors), result.errors
    assert project.things() == {}
