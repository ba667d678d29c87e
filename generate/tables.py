"""Tables in pages that are written by hand, between ``<!-- make generate: name -->`` and ``<!-- end -->``."""

import re
from collections.abc import Callable, Iterator, Mapping

from generate.collection import COLLECTION, modules
from generate.reference import on_change
from generate.render import ROOT
from pulumi_hosting.provider.names import NAME, class_of
from pulumi_hosting.provider.plugin.package_schema import configuration
from pulumi_hosting.resources import RESOURCES

OWNED: tuple[str, ...] = ()

PAGES = ("README.md", "docs/*.md", f"{COLLECTION}/README.md")
PART = re.compile(r"(?P<begin><!-- make generate: (?P<name>[\w-]+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL)


def files() -> Mapping[str, str]:
    """The text of every page that has such a table."""
    found = {}
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            if PART.search(text):
                found[path.relative_to(ROOT).as_posix()] = PART.sub(_filled, text)
    return found


def _filled(part: re.Match[str]) -> str:
    return part["begin"] + "\n" + "\n".join(TABLES[part["name"]]()) + "\n\n" + part["end"]


def _modules(kind: str) -> Iterator[str]:
    yield "| Module | What it does |"
    yield "|---|---|"
    for one in modules():
        first = next(key for key in ("lookup", "action", "resource") if key in one.source)
        if first == kind:
            text = one.source["short_description"]
            yield f"| `{one.name}` | {text[0].lower()}{text[1:]} |"


def _changes() -> Iterator[str]:
    """What a change of each input does, by the traits of the fields."""
    yield "| Resource | Changed in place | Change replaces the resource | Used at creation only |"
    yield "|---|---|---|---|"
    for kind, resource in RESOURCES.items():
        columns: dict[str, list[str]] = {"in place": [], "replaced": [], "no effect": []}
        for name in resource.Inputs.model_fields:
            effect, otherwise, _ = on_change(name, resource.Inputs).partition(", or as `rebuild` says")
            column = "in place" if effect == "an action" else effect
            if not resource.Inputs.trait(name).policy:
                columns[column].append(f"`{name}`" + (" (or as `rebuild` says)" if otherwise else ""))
        cells = " | ".join(", ".join(names) or "-" for names in columns.values())
        yield f"| `{class_of(kind)}` | {cells} |"


def _registry_example() -> Iterator[str]:
    """The program of a server in the languages that Pulumi's registry lets a reader choose."""
    languages = {"python": "__main__.py", "typescript": "index.ts", "yaml": "Pulumi.yaml"}
    yield f'{{{{< chooser language "{",".join(languages)}" >}}}}'
    for language, name in languages.items():
        lines = (ROOT / "examples" / "resources" / "server" / name).read_text(encoding="utf-8").splitlines()
        yield f"{{{{% choosable language {language} %}}}}\n\n```{language}"
        yield from (line for line in lines if "`make generate`" not in line)
        yield "```\n\n{{% /choosable %}}"
    yield "{{< /chooser >}}"


def _registry_settings() -> Iterator[str]:
    yield "| Setting | Environment | Meaning |"
    yield "|---|---|---|"
    for name, spec in configuration().items():
        (variable,) = spec["defaultInfo"]["environment"]
        yield f"| `{NAME}:{name}` | `{variable}` | {spec['description']} |"


TABLES: Mapping[str, Callable[[], Iterator[str]]] = {
    "resource-modules": lambda: _modules("resource"),
    "action-modules": lambda: _modules("action"),
    "info-modules": lambda: _modules("lookup"),
    "changes": _changes,
    "registry-example": _registry_example,
    "registry-settings": _registry_settings,
}
