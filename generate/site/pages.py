"""The pages of the site: their Markdown by name, and their place in its navigation."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from pydantic.fields import FieldInfo

from ansible_collections.hosting.cloud.plugins.doc_fragments.client import ModuleDocFragment
from generate import lookup_examples, reference
from generate.collection import COLLECTION, Module, modules
from generate.module_options import option
from generate.render import ROOT, codes, render
from generate.site import links, markup
from pulumi_hosting import __version__
from pulumi_hosting.provider.names import class_of, token
from pulumi_hosting.provider.resource_shape import title_of
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.base import AnyResource
from pulumi_hosting.resources.powers import Priced
from pulumi_hosting.schema.fields import markdown
from pulumi_hosting.schema.lookups import LOOKUPS, Lookup

IDS: Mapping[str, str] = {
    "server": "20001",
    "domain": "example.com",
    "ssh_key": "60001",
    "server_ip": "20001/198.18.1.5",
    "ptr": "20001/198.18.1.5",
    "webhook_subscription": "80001",
}
"""The id that `pulumi import` takes, for each resource."""

GROUPS: Mapping[str, tuple[str, ...]] = {
    "By task": (
        *("order", "change", "cancel", "paid-time", "costs-and-limits", "move", "adopt", "unit-testing"),
        *("gitops", "several-stacks", "teams", "webhooks", "troubleshooting", "from-hcloud-or-terraform"),
    ),
    "Guides": (
        *("installing", "configuration", "pulumi", "plugin", "offline", "collection", "commands", "client"),
        *("emulator", "emulator-control", "exporter", "platforms"),
    ),
    "How it works": (
        *("crashes", "what-can-be-lost", "requests", "rate-limits", "outputs", "pipeline-run", "certify"),
        *("security", "upgrade", "changelog"),
    ),
}
"""The pages by hand. Those that are not named here come last among the guides."""

_ELSEWHERE: Mapping[str, str] = {
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "pulumi_hosting/emulator/README.md": "emulator.md",
    f"{COLLECTION}/README.md": "collection.md",
    "docs/reference/resources.md": "resources/index.md",
    "docs/reference/lookups.md": "lookups/index.md",
    "docs/README.md": "index.md",
    "README.md": "index.md",
}
_GENERATED = frozenset(
    {"docs/README.md", "README.md", "docs/reference/resources.md", "docs/reference/lookups.md"}
)
_SEARCHED: Mapping[str, float] = {
    **{
        "pipeline-run": 0,
        "changelog": 0,
        "certify": 0.1,
        "reference/models": 0.5,
        "reference/operations": 0.5,
    },
    **{"adopt": 0.8, "offline": 0.5, "configuration": 2, "reference/errors": 8},
}
"""How much a page counts in the search, 0 for records that have every word and explain none."""
_OF_REGISTRY = frozenset({"docs/_index.md", "docs/installation-configuration.md"})


def of_files() -> dict[str, str]:
    """The site's page for each file of the repository that has one."""
    found = {
        path.relative_to(ROOT).as_posix(): path.relative_to(ROOT / "docs").as_posix()
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if path.relative_to(ROOT).as_posix() not in _OF_REGISTRY
    }
    return {**found, **_ELSEWHERE}


def pages() -> Mapping[str, str]:
    """The Markdown of every page."""
    site, found = of_files(), modules()
    pictures = (path.name for path in (ROOT / "docs" / "images").iterdir())
    targets = site | {f"docs/images/{name}": f"images/{name}" for name in pictures}
    return {
        **{
            page: _search(page) + links.page(file, targets) + _origin(file)
            for file, page in site.items()
            if file not in _GENERATED
        },
        "index.md": _rendered("index.md", resources=RESOURCES, modules=found, version=__version__),
        "resources/index.md": _rendered("resources.md", resources=RESOURCES),
        **{f"resources/{kind}.md": _resource(resource, found) for kind, resource in RESOURCES.items()},
        "lookups/index.md": _rendered("lookups.md", groups=lookup_groups()),
        **{
            f"lookups/{tag}.md": _rendered("lookup.md", tag=tag, lookups=lookups, modules=found)
            for tag, lookups in lookup_groups().items()
        },
        "modules/index.md": _rendered("modules.md", areas=areas(found)),
        **{f"modules/{module.name}.md": _module(module) for module in found},
    }


def _search(page: str) -> str:
    """How the search of the site treats a page by hand: what explains a word comes before what uses it."""
    name = page.removesuffix(".md")
    boost = _SEARCHED.get(name, 3 if name in GROUPS["By task"] else 1.5)
    return f"---\nsearch: {{{f'boost: {boost}' if boost else 'exclude: true'}}}\n---\n"


def _origin(file: str) -> str:
    """The last line of a page by hand: the file to edit."""
    if file.startswith("docs/reference/"):
        return ""
    files = links.URLS["Source"]
    text = f'<a href="{files}{file}">Edit this page</a>' if files else f"Source: <code>{file}</code>"
    return f'\n<p class="origin" data-search-exclude>{text}</p>\n'


def navigation() -> list[object]:
    """The pages in the order in which the site shows them."""
    by_hand = {
        page.removesuffix(".md")
        for file, page in of_files().items()
        if "/" not in page and file not in _GENERATED
    }
    groups = {group: list(names) for group, names in GROUPS.items()}
    groups["Guides"] += sorted(by_hand - {name for names in GROUPS.values() for name in names})
    tasks, guides, inside = (
        {group: [f"{name}.md" for name in names if name in by_hand]} for group, names in groups.items()
    )
    return [
        {"Home": "index.md"},
        tasks,
        guides,
        {"Resources": ["resources/index.md", *(f"resources/{kind}.md" for kind in RESOURCES)]},
        {
            "Ansible modules": [
                "modules/index.md",
                *(
                    {_title(area): [f"modules/{module.name}.md" for module in found]}
                    for area, found in areas(modules()).items()
                ),
            ]
        },
        {"Lookups": ["lookups/index.md", *(f"lookups/{tag}.md" for tag in lookup_groups())]},
        inside,
        {
            "Reference": [
                {"Errors": "reference/errors.md"},
                {"Operations": "reference/operations.md"},
                {"Models": "reference/models.md"},
            ]
        },
    ]


def areas(found: list[Module]) -> dict[str, list[Module]]:
    """The modules by the area of the API."""
    return {area: [module for module in found if module.area == area] for area in {m.area: 0 for m in found}}


def lookup_groups() -> dict[str, list[Lookup]]:
    """The lookups by the area of the API."""
    found: dict[str, list[Lookup]] = {}
    for lookup in LOOKUPS.values():
        found.setdefault(reference.group_of(lookup.operation), []).append(lookup)
    return found


# --- the kinds of pages -------------------------------------------------------------------------------------


def _rendered(template: str, **values: object) -> str:
    filters = {
        "ansible": markup.ansible,
        "class_of": class_of,
        "codes": codes,
        "finds": lambda lookup: reference.finds(lookup).replace("(models.md", "(../reference/models.md"),
        "module_of": lookup_examples.module_of,
        "safe": markup.safe,
        "tabs_of": _lookup_tabs,
        "title": _title,
        "title_of": lambda resource: markdown(title_of(resource)),
        "token": token,
    }
    return render(f"site/{template}.j2", filters, **values)


def _title(name: str) -> str:
    words = name.replace("_", " ").replace("ssh", "SSH").replace("ptr", "PTR")
    return words[0].upper() + words[1:]


def _resource(resource: AnyResource, found: list[Module]) -> str:
    kind = resource.kind
    inputs, state = resource.Inputs.model_fields, resource.State.model_fields
    return _rendered(
        "resource.md",
        resource=resource,
        tabs=resource_tabs(kind),
        id=IDS[kind],
        inputs=[
            {
                "name": name,
                "type": _kind(info),
                "default": _default(name, resource),
                "change": reference.on_change(name, resource.Inputs),
                "meaning": info.description,
            }
            for name, info in inputs.items()
        ],
        secrets=resource.State.secret_fields(),
        types={name: _kind(info) for name, info in state.items()},
        modules=[module for module in found if module.source.get("resource") == kind],
        costs=isinstance(resource, Priced),
    )


def _kind(info: FieldInfo) -> str:
    return markup.kind_of(option(None, info).documentation())


def _default(name: str, resource: AnyResource) -> str:
    if name == "name" and resource.default_name:
        return "the resource's name"
    found = reference.default(name, resource.Inputs)
    return {"`None`": "—", "required": "**needed**", "`True`": "`true`", "`False`": "`false`"}.get(
        found, found
    )


def resource_tabs(kind: str) -> str:
    """The example of a resource in each language."""
    files = {
        "Python": ("python", "__main__.py"),
        "YAML": ("yaml", "Pulumi.yaml"),
        "TypeScript": ("typescript", "index.ts"),
        "Ansible": ("yaml", "playbook.yml"),
    }
    folder = ROOT / "examples" / "resources" / kind
    return markup.tabs(
        {
            title: (language, _without_note((folder / name).read_text(encoding="utf-8")))
            for title, (language, name) in files.items()
        }
    )


def _without_note(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if "`make generate`" not in line)


def _lookup_tabs(lookup: Lookup, found: list[Module]) -> str:
    examples = {
        "Python": ("python", lookup_examples.python(lookup)),
        "YAML": ("yaml", lookup_examples.yaml(lookup)),
        "TypeScript": ("typescript", lookup_examples.typescript(lookup)),
    }
    if module := lookup_examples.module_of(lookup, found):
        examples["Ansible"] = ("yaml", module.source["examples"])
    return markup.tabs(examples)


def _module(module: Module) -> str:
    source = module.source
    lookup = LOOKUPS.get(source.get("lookup", ""))
    return _rendered(
        "module.md",
        module=module,
        source={"seealso": (), **source},
        resource=None if lookup else source.get("resource"),
        example=markup.tabs({"Ansible": ("yaml", source["examples"])}),
        lookup=lookup,
        tag=next((tag for tag, lookups in lookup_groups().items() if lookup in lookups), None),
        options=_options({name: one.documentation() for name, one in module.options.items()}),
        shared=_options(_fragments(module)),
        returns=[*_returns(module.returns)],
    )


def _fragments(module: Module) -> dict[str, object]:
    """The options that a module shares with others."""
    found: dict[str, object] = {}
    for fragment in module.fragments:
        part = fragment.partition(".")[2].upper() or "DOCUMENTATION"
        found |= yaml.safe_load(getattr(ModuleDocFragment, part)).get("options", {})
    return found | {name: one.documentation() for name, one in module.shared.items()}


def _options(documented: Mapping[str, Any]) -> list[dict[str, object]]:
    return [
        {
            "name": name,
            "type": markup.kind_of(one),
            "default": "**needed**" if one.get("required") else _value(one.get("default")),
            "meaning": markup.ansible(one["description"]),
        }
        for name, one in documented.items()
    ]


def _value(value: object) -> str:
    if value is None:
        return "—"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`" if value != "" else "empty"


def _returns(returned: Mapping[str, Any], before: str = "") -> Iterator[dict[str, str]]:
    for name, one in returned.items():
        text = markup.ansible(one["description"])
        yield {"name": f"{before}{name}", "type": one.get("type", ""), "meaning": text}
        inside = f"{before}{name}[]." if one.get("type") == "list" else f"{before}{name}."
        yield from _returns(one.get("contains", {}), inside)
