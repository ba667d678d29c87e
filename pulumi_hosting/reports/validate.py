"""All mistakes of a Pulumi program at once, without an account: it runs once, in a process of its own.

Nothing is asked of Pulumi's engine, of a provider or of the service: every declaration is checked as a
preview checks it before it asks the account, and the program goes on.

A program that Pulumi runs without our classes, in YAML, TypeScript or JavaScript, is read, not run, for what
goes with a server that it keeps: ``deletedWith`` beside ``protect`` or ``retainOnDelete`` of the server.
Pulumi reports the resource as deleted and asks no provider, and it stays with its server. Options count as
they are written out: in the declaration, in a parent, in TypeScript in a constant of the same file.
"""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import yaml

from pulumi_hosting.client.settings import API_KEY_SOURCES
from pulumi_hosting.offline.errors import OfflineError
from pulumi_hosting.offline.storage.project import Project, StackConfig, find_python, load_project, runtime_of
from pulumi_hosting.provider.mistake import Mistake
from pulumi_hosting.provider.names import NAME
from pulumi_hosting.provider.stack_settings import SETTINGS
from pulumi_hosting.rehearsal.facts import mapping
from pulumi_hosting.reports.report import FOUND, CannotAnswer, Report, Unusable, counted

_ACCOUNT = {SETTINGS["apiKey"], *API_KEY_SOURCES, SETTINGS["baseUrl"]}


def run(directory: Path, config: Mapping[str, str], stack: str | None) -> Report:
    """Run the program once and check what it declares.

    ``config``: values of the stack's configuration, by key; they come before those of Pulumi.yaml and of the
    stack's settings file, whose secrets are not read. Raises ``Unusable`` where there is no project or no
    Python for it, ``CannotAnswer`` where the program could not be run and nothing else is wrong.
    """
    try:
        runtime, folder_of_program = runtime_of(directory)
        if runtime in ("yaml", "nodejs"):
            return _report(*_read(folder_of_program, runtime), "read, none goes with a server that stays")
        if runtime != "python":
            known = "Python, YAML, TypeScript and JavaScript"
            raise Unusable(f"programs in {known} can be checked, and runtime is {runtime!r}")
        project = load_project(directory)
        python = find_python(project, os.environ)
        values, secret = _configuration(project, config, stack)
    except OfflineError as error:
        raise Unusable(str(error)) from None
    order = {
        "program": str(project.program),
        "directory": str(project.directory),
        "project": project.name,
        "stack": stack or "validate",
        "config": values,
        "secrets": secret,
    }
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "found.json"
        command = [python, "-P", "-m", "pulumi_hosting.reports.checked_program", str(answer)]
        done = subprocess.run(
            command,
            input=json.dumps(order),
            capture_output=True,
            text=True,
            check=False,
            cwd=project.directory,
            # Without key and address nothing that a program does can reach the account.
            env={name: value for name, value in os.environ.items() if name not in _ACCOUNT},
        )
        if not answer.exists():
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise CannotAnswer(f"the program could not be checked: {lines[-1]}")
        found = json.loads(answer.read_text(encoding="utf-8"))
    if found["not_run"] and len(found["mistakes"]) == 1:  # the one that says where the program ends
        raise CannotAnswer(f"the program could not be run: {found['not_run']}")
    mistakes = [Mistake(**mistake) for mistake in found["mistakes"]]
    return _report(found["resources"], mistakes, "checked, no mistakes")


def _report(resources: int, mistakes: Sequence[Mistake], otherwise: str) -> Report:
    """``otherwise``: what is said of the resources if nothing is wrong."""
    return Report(
        {"resources": resources, "mistakes": [asdict(mistake) for mistake in mistakes]},
        [*map(str, mistakes)] or [f"{counted(resources, 'resource')} {otherwise}."],
        exit_code=FOUND if mistakes else 0,
    )


def _configuration(
    project: Project, config: Mapping[str, str], stack: str | None
) -> tuple[dict[str, str], list[str]]:
    """The values and the keys of secrets. A secret of the settings file has a text that stands in for it."""
    settings = StackConfig(Path(), project, {}) if stack is None else StackConfig.load(project, stack)
    hidden = {
        key: value for key, value in (settings.data.get("config") or {}).items() if isinstance(value, dict)
    }
    for key in hidden:
        settings.data["config"][key] = "a secret of the stack"
    values = {key: str(value) for key, value in settings.values(None).items()}
    values |= {settings.key(key): value for key, value in config.items()}
    return values, [key for key in hidden if key in values]


SERVER, OF_A_SERVER = "Server", ("ServerIp", "Ptr")
KEEPING = ("protect", "retainOnDelete")
_SKIPPED = {"node_modules", "sdks", "bin", "dist"}


@dataclass(frozen=True, slots=True)
class SourceObject:
    """``kind``: the class of ours, else empty. ``options``: True, or the name of another declaration."""

    kind: str
    name: str
    line: int
    options: Mapping[str, bool | str] = field(default_factory=dict)


def _read(directory: Path, runtime: str) -> tuple[int, list[Mistake]]:
    """How many servers and resources of servers it declares, and what is wrong with their options. Raises
    ``Unusable`` for a file that cannot be read."""
    count, mistakes = 0, []
    for file, scopes in (_yaml if runtime == "yaml" else _scripts)(directory):
        for declared in scopes:
            count += sum(1 for one in declared.values() if one.kind in (SERVER, *OF_A_SERVER))
            mistakes += [Mistake(file, *found) for found in _mistakes(declared)]
    return count, mistakes


def _mistakes(declared: Mapping[str, SourceObject]) -> Iterator[tuple[int, str, str, str]]:
    for one in declared.values():
        if one.kind not in OF_A_SERVER or _keeping(one, declared):
            continue
        server = declared.get(str(_option(one, "deletedWith", declared)))
        if server is None or server.kind != SERVER or not (option := _keeping(server, declared)):
            continue
        paid = " and is billed" if one.kind == "ServerIp" else ""
        text = (
            f"it is deletedWith {server.name}, which {option} keeps: Pulumi would report it as deleted, and "
            f"it stays{paid}. Next: remove deletedWith"
        )
        yield one.line, one.kind, one.name, text


def _keeping(one: SourceObject, declared: Mapping[str, SourceObject]) -> str | None:
    """The option that keeps it."""
    return next((option for option in KEEPING if _option(one, option, declared) is True), None)


def _option(one: SourceObject, option: str, declared: Mapping[str, SourceObject]) -> bool | str | None:
    """Its own, else its parent's."""
    passed: list[SourceObject] = []
    current: SourceObject | None = one
    while current is not None and current not in passed:
        if option in current.options:
            return current.options[option]
        passed.append(current)
        current = declared.get(str(current.options.get("parent")))
    return None


# --- YAML --------------------------------------------------------------------------------------------------


def _yaml(directory: Path) -> Iterator[tuple[str, list[dict[str, SourceObject]]]]:
    names = ("Main.yaml", "Main.yml", "Pulumi.yaml", "Pulumi.yml")
    path = next((directory / name for name in names if (directory / name).is_file()), None)
    if path is None:
        raise Unusable(f"no program in YAML found in {directory}")
    try:
        program = _Loader(path.read_text(encoding="utf-8")).get_single_data()
    except (yaml.YAMLError, OSError, ValueError) as error:
        raise Unusable(f"{path} cannot be read: {' '.join(str(error).split())}") from None
    components = mapping(mapping(program).get("components")).values()
    yield path.name, [_resources(mapping(one)) for one in (program, *components)]


def _resources(scope: Mapping[str, object]) -> dict[str, SourceObject]:
    found: dict[str, SourceObject] = {}
    for name, resource in mapping(scope.get("resources")).items():
        if not isinstance(name, _Text):
            continue  # Pulumi refuses the program
        package, _, kind = str(mapping(resource).get("type", "")).partition(":")
        given = mapping(mapping(resource).get("options"))
        options = {option: value for option, value in given.items() if isinstance(value, bool | str)}
        for option, value in options.items():
            if reference := re.fullmatch(r"\$\{\s*([\w-]+)\s*\}", str(value)):
                options[option] = reference[1]
        ours = kind.rpartition(":")[2] if package == NAME else ""
        found[name] = SourceObject(ours, str(mapping(resource).get("name", name)), name.line, options)
    return found


class _Text(str):
    """A text, and its line."""

    line = 0


class _Loader(yaml.SafeLoader):
    """Texts know their line."""

    def construct_text(self, node: yaml.ScalarNode) -> _Text:
        text = _Text(node.value)
        text.line = node.start_mark.line + 1
        return text


_Loader.add_constructor("tag:yaml.org,2002:str", _Loader.construct_text)


# --- TypeScript and JavaScript -----------------------------------------------------------------------------

_NEW = re.compile(r"(?:([\w$.]+)\s*(?::[^=;(){}]+)?=\s*)?\bnew\s+(?:[\w$]+\.)*([\w$]+)\s*(?:<[^()]*>)?\(")
_CONSTANT = re.compile(r"\b(?:const|let|var)\s+([\w$]+)\s*(?::[^=;]+)?=\s*(?=\{)")
_TEXT = re.compile(
    r"//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|[^`\\])*`", re.DOTALL
)
_PAIRS = {"(": ")", "{": "}", "[": "]"}


def _scripts(directory: Path) -> Iterator[tuple[str, list[dict[str, SourceObject]]]]:
    for path in sorted(directory.rglob("*")):
        inside = path.relative_to(directory)
        if path.suffix not in (".ts", ".js", ".mts", ".mjs") or path.name.endswith(".d.ts"):
            continue
        if not _SKIPPED & {*inside.parts} and path.is_file():
            yield str(inside), [_declarations(path.read_text(encoding="utf-8", errors="replace"))]


def _declarations(script: str) -> dict[str, SourceObject]:
    """By the variable that holds it."""
    code = _TEXT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), script)
    constants = {
        found[1]: code[found.end() : _inside(code, found.end())[1]] for found in _CONSTANT.finditer(code)
    }
    declared = {}
    for number, found in enumerate(_NEW.finditer(code)):
        variable, kind = found.groups()
        spans, _ = _inside(code, found.end() - 1)
        named = re.match(r"\s*(['\"`])(.*?)\1", script[spans[0][0] : spans[0][1]]) if spans else None
        options = _options(code[slice(*spans[-1])], constants) if len(spans) > 1 else {}
        line = code.count("\n", 0, found.start(2)) + 1
        ours = kind if kind in (SERVER, *OF_A_SERVER) else ""
        declared[variable or f"#{number}"] = SourceObject(ours, named[2] if named else kind, line, options)
    return declared


def _options(text: str, constants: Mapping[str, str]) -> dict[str, bool | str]:
    """Of an object that is written out, or of a constant that is one."""
    text = text.strip()
    text = constants.get(text, text)
    found: dict[str, bool | str] = {}
    if text.startswith("{"):
        for start, end in _inside(text, 0)[0]:
            name, colon, value = text[start:end].strip().partition(":")
            if name.startswith("..."):
                found |= _options(name[3:], constants)
            elif name:
                value = value.strip() if colon else name
                found[name.strip()] = value == "true" if value in ("true", "false") else value
    return found


def _inside(code: str, start: int) -> tuple[list[tuple[int, int]], int]:
    """Where the parts are that commas separate in the bracket at ``start``, and the place behind it."""
    parts, closing, first = [], [_PAIRS[code[start]]], start + 1
    for place in range(start + 1, len(code)):
        if code[place] in _PAIRS:
            closing.append(_PAIRS[code[place]])
        elif code[place] == "," and len(closing) == 1:
            parts.append((first, place))
            first = place + 1
        elif code[place] == closing[-1]:
            closing.pop()
            if not closing:
                last = [(first, place)] if code[first:place].strip() else []
                return parts + last, place + 1
    return parts, len(code)
