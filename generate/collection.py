"""The modules of the Ansible collection, from resources, actions, lookups and ``generate/modules/*.yml``.

What a module takes and returns follows from the package. What its documentation says beyond that, and how the
module is wired, stands in the YAML file of its area.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from generate.module_options import Option, lines, option
from generate.render import ROOT, formatted, render
from generate.returns import CHARGE, NOTE, contents
from pulumi_hosting.actions import ACTIONS
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.powers import Priced
from pulumi_hosting.schema.fields import Field
from pulumi_hosting.schema.lookups import LOOKUPS

COLLECTION = "ansible_collections/hosting/cloud"
OWNED = (f"{COLLECTION}/plugins/modules/*.py", f"{COLLECTION}/plugins/action/*.py")

WIDTH = 108
STATE = Option("str", choices=["present", "absent"], default="present")
MANY = "The answer is always a list, which is empty when nothing matches."
SCOPE = Option(
    "str",
    [
        (
            "Together with what names the object this is what a declaration is recognised by when an "
            "interrupted run is repeated."
        ),
        "Needed only where independent playbooks order the same names on one account at different times.",
    ],
    default="",
)

ModuleSource = Mapping[str, Any]
"""What the YAML has of a module."""


@dataclass
class Module:
    """One module as it is written."""

    name: str
    area: str
    source: ModuleSource
    fragments: list[str]
    options: dict[str, Option]
    class_file: str
    base: str
    """The module's class and the file of ``module_utils`` that it stands in, unless the YAML names others."""
    made: list[str]
    returns: dict[str, Any]
    description: list[str] = field(default_factory=list)
    shared: dict[str, Option] = field(default_factory=dict)
    """Options that the module's class declares, documented here because they differ from the fragment's."""


def files() -> Mapping[str, str]:
    """The text of every file."""
    found = modules()
    filters = {"yaml": dumped}
    texts = {f"{COLLECTION}/plugins/modules/{module.name}.py": _text(module) for module in found}
    names = sorted(module.name for module in found)
    content = {"requires_ansible": ">=2.18.0", "action_groups": {"all": names}}
    return {
        **formatted(texts),
        **{
            f"{COLLECTION}/plugins/action/{name}.py": render("collection/action.py.j2", name=name)
            for name in names
        },
        **dict(_targets(found)),
        f"{COLLECTION}/meta/runtime.yml": render("collection/runtime.yml.j2", filters, content=content),
    }


def _targets(found: list[Module]) -> Iterator[tuple[str, str]]:
    """An integration target for each module that has none written by hand: its examples."""
    targets = f"{COLLECTION}/tests/integration/targets"
    for module in found:
        tasks = f"{targets}/{module.name}/tasks/main.yml"
        if not (ROOT / tasks).exists() or "`make generate`" in (ROOT / tasks).read_text(encoding="utf-8"):
            yield tasks, render("collection/target.yml.j2", source={"before": None, **module.source})
            for name in ("aliases", "meta/main.yml"):  # as every target has them
                yield (
                    f"{targets}/{module.name}/{name}",
                    (ROOT / targets / "me_info" / name).read_text(encoding="utf-8"),
                )


def modules() -> list[Module]:
    """Every module, in the order of the files of YAML."""
    found = []
    for path in sorted((Path(__file__).parent / "modules").glob("*.yml")):
        for name, source in yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader).items():
            make = _info if "lookup" in source else _action if "action" in source else _resource
            found.append(make(name, path.stem, source))
    return found


# --- the three kinds of modules -----------------------------------------------------------------------------


def _resource(name: str, area: str, source: ModuleSource) -> Module:
    kind = source["resource"]
    resource = RESOURCES[kind]
    wanted = [
        field
        for field in source.get("only", resource.Inputs.model_fields)
        if field not in source.get("without", ())
    ]
    texts = dict(source.get("options", {}))
    state = texts.pop("state", None)
    options = _options(
        texts, {field: resource.Inputs.model_fields[field] for field in wanted}, source.get("required", ())
    )
    costs = isinstance(resource, Priced)
    if source.get("has_idempotency_scope"):
        options["idempotency_scope"] = SCOPE
    result = _result(source, contents(resource.State, kind))
    clears = {name: value for name, value in resource.Inputs.clears().items() if name in wanted}
    is_whole = "only" not in source
    return Module(
        name,
        area,
        source,
        ["client", "client.wait", *(["client.resource"] if is_whole else []), "client.change"],
        options,
        "resource_module",
        "ResourceModule",
        [
            f'"{kind}"',
            "OPTIONS",
            *(["charges=True"] if costs else []),
            *([f"clears={clears!r}"] if clears else []),
        ],
        {kind: result, **({"charge": CHARGE} if costs else {}), **_beside(source)},
        lines(source["description"]),
        {"state": replace(STATE, **(state if isinstance(state, dict) else {"description": lines(state)}))}
        if state
        else {},
    )


def _action(name: str, area: str, source: ModuleSource) -> Module:
    action = ACTIONS[source["action"]]
    result = _result(source, contents(action.Result, action.result), many=action.many)
    return Module(
        name,
        area,
        source,
        ["client", "client.wait", "client.change"],
        _options(source.get("options", {}), action.Inputs.model_fields, source.get("required", ())),
        "action_module",
        "CoreActionModule",
        [f'"{source["action"]}"', "OPTIONS", *(["charges=True"] if action.charges else [])],
        {action.result: result, **({"charge": CHARGE} if action.charges else {}), "note": NOTE},
        lines(source["description"]),
    )


def _info(name: str, area: str, source: ModuleSource) -> Module:
    lookup = LOOKUPS[source["lookup"]]
    kind, result = source.get("resource"), source["result"]
    query: type[BaseModel] | None = lookup.operation.query
    filters = {} if query is None else query.model_fields
    asked = {
        argument.name: filters[argument.name] for argument in lookup.arguments if argument.name in filters
    }
    # Classes of their own find the ids of the path in their own way.
    path = {
        item.name: item
        for item in lookup.arguments
        if item.name in lookup.operation.path_parameters and not kind and "class" not in source
    }
    texts = {**{name: _path_option(item) for name, item in path.items()}, **source.get("options", {})}
    model = RESOURCES[kind].State if kind else next(lookup.value.models(), None)
    inside = contents(model, result) if model is not None else {}
    inside |= {entry: _entry(entry, given) for entry, given in source.get("contains", {}).items()}
    is_list = lookup.value.kind == "array"
    returns = {result: _result(source, inside, many=is_list), **_beside(source)}
    scopes = ", ".join(f"C({scope})" for scope in lookup.operation.scopes)
    alternatives = {name for names in source.get("rules", {}).get("required_one_of", ()) for name in names}
    required = {argument.name for argument in lookup.arguments if argument.required} - alternatives
    names = (
        [f'"{kind}"', f'"{result}"', "OPTIONS"]
        if kind
        else [f'"{result}"', f'"{source["lookup"]}"', "OPTIONS"]
    )
    return Module(
        name,
        area,
        source,
        ["client", "client.info"],
        _options(texts, asked, required),
        "info_module",
        "ResourceInfoModule" if kind else "LookupInfoModule",
        [
            *names,
            *([f'one="{source["one"]}"'] if "one" in source else []),
            *([f"path={tuple(path)!r}"] if path else []),
        ],
        returns,
        [
            f"Reads the {source['what']}.",
            *([MANY] if is_list else []),
            *([f"The API key needs {scopes}."] if scopes else []),
        ],
    )


def lookups_of(source: ModuleSource) -> list[str]:
    """The lookups that a module asks: its own, the one for a single object, and parts of its result."""
    parts = [item["lookup"] for item in source.get("contains", {}).values() if "lookup" in item]
    return [*(source[key] for key in ("lookup", "one") if key in source), *parts]


def _path_option(item: Field) -> ModuleSource:
    return {"type": "str" if item.type.is_id else "int", "description": item.description}


def _result(source: ModuleSource, inside: Mapping[str, Any], *, many: bool = False) -> dict[str, Any]:
    """What a module returns: an object, or many."""
    shape = {"type": "list", "elements": "dict"} if many else {"type": "dict"}
    result = {"description": source["returns"], "returned": "success", **shape, "contains": inside}
    return {key: value for key, value in result.items() if value}


def _beside(source: ModuleSource) -> dict[str, Any]:
    """What a module returns beside its result."""
    entries = source.get("also_returns", {}).items()
    return {name: {"returned": "success", **_entry(name, given)} for name, given in entries}


def _entry(name: str, given: ModuleSource) -> dict[str, object]:
    """A further entry of a result: as the YAML has it, or what a lookup finds."""
    if "lookup" not in given:
        return dict(given)
    model = LOOKUPS[given["lookup"]].value.model
    assert model is not None  # noqa: S101  # such an entry is one object
    return {"description": given["description"], "type": "dict", "contains": contents(model, name)}


def _options(
    texts: ModuleSource, inputs: Mapping[str, FieldInfo], required: Collection[str]
) -> dict[str, Option]:
    """The inputs in their order; what only the module has stands before or after them, as in the YAML."""
    names = list(texts)
    first = next((place for place, name in enumerate(names) if name in inputs), 0)
    before = [name for name in names[:first] if name not in inputs]
    after = [name for name in names[first:] if name not in inputs]
    found = {name: option(texts.get(name), inputs.get(name)) for name in (*before, *inputs, *after)}
    return {name: replace(one, required=True) if name in required else one for name, one in found.items()}


# --- writing ------------------------------------------------------------------------------------------------


def _text(module: Module) -> str:
    source = module.source
    documentation = {
        "module": module.name,
        "short_description": source["short_description"],
        "version_added": source["version_added"],
        "description": module.description,
        "author": ["The pulumi-hosting authors (@pulumi-hosting)"],
        "options": {name: one.documentation() for name, one in {**module.options, **module.shared}.items()},
        "extends_documentation_fragment": [f"hosting.cloud.{fragment}" for fragment in module.fragments],
        "seealso": [{"module": f"hosting.cloud.{name}"} for name in source.get("seealso", ())],
    }
    return render(
        "collection/module.py.j2",
        {"yaml": dumped},
        name=module.name,
        area=module.area,
        source={"before": None, **source},
        documentation={key: value for key, value in documentation.items() if value},
        returns=module.returns,
        class_file=source.get("class_file", module.class_file),
        options={name: one.spec(name) for name, one in module.options.items()},
        arguments=[
            *module.made,
            *(f"{name}={_tuples(value)!r}" for name, value in source.get("rules", {}).items()),
        ],
        **{"class": source.get("class", module.base)},
    )


def _tuples(value: object) -> object:
    """Ansible's rules: a list of tuples."""
    if isinstance(value, list):
        return [tuple(tuple(part) if isinstance(part, list) else part for part in rule) for rule in value]
    return value


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        return super().increase_indent(flow, False)

    def ignore_aliases(self, data: object) -> bool:
        return True


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if re.fullmatch(r"[\d.]+|\d{4}-\d\d-\d\dT.*|true|false|null|yes|no|on|off", text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _string)


def dumped(value: object) -> str:
    """YAML with indented lists, texts in quotes where they would be read as something else."""
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH, default_flow_style=False
    )
