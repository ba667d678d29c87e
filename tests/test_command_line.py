"""Help texts, typing errors and shell completion of every command."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pulumi_hosting.cli import main
from pulumi_hosting.cli.lazy import LazyGroup
from tests.support.texts import texts

NAME = "pulumi-hosting"
EXECUTABLE = Path(sys.executable).with_name(NAME)


def commands(
    command: click.Command = main, path: tuple[str, ...] = (NAME,)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with its path, groups included."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path[-1])
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))


ALL = {" ".join(path): command for path, command in commands()}


def prose_and_example(command: click.Command) -> tuple[list[str], list[str]]:
    paragraphs = [" ".join(part.split()) for part in (command.help or "").split("\n\n")]
    examples = [part.removeprefix("Example: ") for part in paragraphs if part.startswith("Example: ")]
    return [part for part in paragraphs if not part.startswith("Example: ")], examples


@pytest.mark.parametrize("path", ALL)
def test_help_is_whole_sentences_and_an_example(path: str) -> None:
    prose, examples = prose_and_example(ALL[path])
    assert [part for part in prose if not part.endswith((".", ":"))] == []
    assert len(examples) == 1, "add one paragraph: Example: pulumi-hosting …"
    for parameter in ALL[path].params:
        if isinstance(parameter, click.Option) and parameter.name not in ("help", "version"):
            assert (parameter.help or "").endswith("."), f"the help of {parameter.opts} ends with a full stop"
    shown = CliRunner().invoke(main, [*path.split()[1:], "--help"]).output
    assert "..." not in shown.partition("Commands:")[2], "a help text is cut"


@pytest.mark.parametrize("path", ALL)
def test_an_example_runs_its_command_with_options_that_there_are(path: str) -> None:
    _, (example,) = prose_and_example(ALL[path])
    text = re.sub(r'"\$\(|\)"', " ; ", example)
    called = [part for part in re.split(r"[;&|]+", text) if f"{NAME} " in part]
    found = [shlex.split(part[part.index(NAME) :]) for part in called]
    names = [" ".join(words[: len(path.split())]) for words in found]
    assert path in names, f"{example} does not call {path}"
    for words in found:
        known = max((name for name in ALL if " ".join(words).startswith(name)), key=len)
        command = ALL[known]
        options = {
            opt for parameter in command.params for opt in (*parameter.opts, *parameter.secondary_opts)
        }
        given = {word.partition("=")[0] for word in words if word.startswith("-") and word != "-"}
        assert given <= options | {"--help"}, f"{known} has no {given - options}"


ROOT = Path(__file__).parent.parent


def all_texts() -> Iterator[tuple[str, str]]:
    """Place and text of every text of the package, and of every page."""
    yield from texts(ROOT / "pulumi_hosting")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def test_every_command_that_is_named_is_there() -> None:
    """With its options: advice that names no command leads nowhere."""
    wrong, found = [], 0
    for place, text in all_texts():
        filled = text.replace("{kind}", "server")
        for called in re.findall(
            r"(?:\A|Next: |^    |`)pulumi-hosting ([a-z][^`;|&\n]*)", filled, re.MULTILINE
        ):
            words = [word.rstrip(").,:") for word in called.split()]
            command, path = ALL[NAME], NAME
            while words and f"{path} {words[0]}" in ALL:
                path = f"{path} {words.pop(0)}"
                command = ALL[path]
            options = {opt for each in command.params for opt in (*each.opts, *each.secondary_opts)}
            given = {word.partition("=")[0] for word in words if word.startswith("--")}
            is_named = not isinstance(command, click.Group) or not words or words[0] in ("X", "…")
            found += 1
            if not is_named or not given <= options | {"--help"}:
                wrong.append(f"{place}: {called}")
    assert wrong == []
    assert found > 90


def test_the_lists_of_commands_end_with_full_stops() -> None:
    for command in ALL.values():
        assert (command.short_help or ".").endswith(".")
        if isinstance(command, LazyGroup):
            assert [row.help for row in command.lazy.values() if not row.help.endswith(".")] == []


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["reherse"], "rehearse"),
        (["docter"], "doctor"),
        (["plugin", "instal"], "install"),
        (["offline", "destory"], "destroy"),
        (["offline", "stack", "exprot"], "export"),
        (["webhook", "lisen"], "listen"),
    ],
)
def test_a_typing_error_names_the_command(typed: list[str], meant: str) -> None:
    shown = CliRunner().invoke(main, typed)
    assert shown.exit_code == 2
    assert shown.output.splitlines()[-1] == f"Error: No such command {typed[-1]!r}. Did you mean {meant!r}?"


def test_what_resembles_nothing_is_refused_without_a_suggestion() -> None:
    shown = CliRunner().invoke(main, ["xyzzy"])
    assert (shown.exit_code, shown.output.splitlines()[-1]) == (2, "Error: No such command 'xyzzy'.")


def test_a_mistyped_option_names_the_option() -> None:
    shown = CliRunner().invoke(main, ["doctor", "--jsn"])
    assert shown.exit_code == 2
    assert "Did you mean '--json'?" in shown.output


# --- shell completion, as docs/commands.md tells to switch it on


def completed(words: str, shell: str = "bash") -> list[str]:
    """What is offered for the last of the words; its type is left out."""
    given = words.split(" ")
    environ = {
        "_PULUMI_HOSTING_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(given) - 1),
    }
    shown = CliRunner().invoke(main, [], prog_name=NAME, env=environ)
    return [line.rpartition(",")[2] for line in shown.output.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("pulumi-hosting reh", ["rehearse"]),
        ("pulumi-hosting offline stack sel", ["select"]),
        ("pulumi-hosting audit --res", ["--results"]),
        ("pulumi-hosting emulator --dialect ", ["spec", "live"]),
        ("pulumi-hosting doctor --", ["--json", "--help"]),
    ],
)
def test_words_are_completed(words: str, offered: list[str]) -> None:
    assert completed(words) == offered


def test_commands_are_completed_without_importing_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.import_module", lambda name: pytest.fail(f"{name} was imported"))
    assert {"audit", "doctor", "emulator", "rehearse"} <= {*completed("pulumi-hosting ")}


def test_a_command_whose_extra_is_missing_is_completed_up_to_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pulumi_hosting.cli.lazy.find_spec", lambda name: None)
    assert completed("pulumi-hosting emu") == ["emulator"]
    assert completed("pulumi-hosting emulator --dia") == []


def documented(shell: str) -> str:
    """The line of docs/commands.md for that shell."""
    text = (Path(__file__).parent.parent / "docs/commands.md").read_text(encoding="utf-8")
    (line,) = re.findall(rf"^    .*_PULUMI_HOSTING_COMPLETE={shell}_source.*$", text, re.MULTILINE)
    return str(line).strip()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_documented_line_prints_a_script(shell: str) -> None:
    assert f"_PULUMI_HOSTING_COMPLETE={shell}_source {NAME}" in documented(shell)
    shown = CliRunner().invoke(main, [], prog_name=NAME, env={"_PULUMI_HOSTING_COMPLETE": f"{shell}_source"})
    assert shown.exit_code == 0
    assert f"{shell}_complete" in shown.output


def test_bash_completes_as_documented() -> None:
    """A real bash: the documented line, then what Tab does."""
    script = f"""
        {documented("bash")}
        COMP_WORDS=({NAME} do)
        COMP_CWORD=1
        _pulumi_hosting_completion {NAME}
        echo "${{COMPREPLY[@]}}"
    """
    environ = {**os.environ, "PATH": f"{EXECUTABLE.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, env=environ)
    assert done.stdout.split() == ["doctor"], done.stderr


def test_the_help_of_a_command_does_not_load_the_client() -> None:
    """Every command of ours; the emulator's and the engine's load what they are."""
    script = """
import sys
from click.testing import CliRunner
from pulumi_hosting.cli import main
ours = [[name] for name in main.list_commands(None) if name != "emulator"]
for path in [*ours, ["webhook", "listen"], ["plugin", "install"]]:
    assert CliRunner().invoke(main, [*path, "--help"]).exit_code == 0, path
heavy = {"pulumi_hosting.client", "pulumi_hosting.api", "pydantic", "httpx", "pulumi"}
print(*sorted(heavy & {*sys.modules}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
