"""What a line must be to help who reads it: it begins with a name, and each command, option and setting that
its next step names is there, in the words of one frontend."""

import re
from collections.abc import Iterator
from operator import attrgetter

import click

from ansible_collections.hosting.cloud.plugins.module_utils.shared_options import CLIENT_OPTIONS
from pulumi_hosting.api.operations import BY_ID
from pulumi_hosting.cli import main
from pulumi_hosting.cli.connection import TIMEOUT_VARIABLE
from pulumi_hosting.cli.offline import offline
from pulumi_hosting.client.client import Client
from pulumi_hosting.provider.stack_settings import SETTINGS
from tests.ansible.test_specs import module

WORDS_OF = {
    "python": r"idempotency_key=|repeat the (?:same )?call|client\.\w+\.",
    "pulumi": r"\bpulumi [a-z]|hosting:[a-z]\w+",
    "ansible": r"hosting\.cloud|ansible-|playbook|the option \w+|(?:the|this|a) tasks?\b",
    "command line": r"--(?!run-program|refresh|target|file|show)[a-z-]+",
}
"""What only those who use that frontend know."""
_ELSEWHERE = ("plugin", "import", "package")
"""Commands of Pulumi's CLI that the offline engine does not have in the same form."""


def problems(line: str, frontend: str, *others: str) -> list[str]:
    """What is wrong with a line. ``others``: whose words it may have too."""
    words = {name: found for name, pattern in WORDS_OF.items() if (found := re.findall(pattern, line))}
    step = line.partition("Next: ")[2]
    return [
        *(f"has words of {name}: {said}" for name, said in words.items() if name not in (frontend, *others)),
        *(["begins with an operation"] if line.partition(":")[0] in BY_ID else []),
        *(["has a place that is not filled in"] if re.search(r"\{\w+\}", line) else []),
        *(["has no next step, or two"] if line.count("Next: ") != 1 else []),
        *(f"names {name}, which is not there" for name in missing(step)),
    ]


def missing(step: str) -> Iterator[str]:
    """What a step names and nothing has."""
    for program, rest in re.findall(r"\b(pulumi-hosting|pulumi) ((?:(?!\bpulumi\b)[^`,;()])*)", step):
        yield from _unknown(program, rest.split())
    yield from (name for name in re.findall(r"\bHOSTING_[A-Z_]+", step) if name not in _VARIABLES)
    yield from (
        f"hosting:{name}" for name in re.findall(r"\bhosting:([a-z]\w+)", step) if name not in SETTINGS
    )
    yield from (name for name in re.findall(r"the option (\w+)", step) if name not in CLIENT_OPTIONS)
    for name, options in re.findall(r"hosting\.cloud\.(\w+) with ([^;]*)", step):
        given = re.findall(r"(\w+)(?=: )|and (\w+)$", options)
        spec = module(name).MODULE.argument_spec
        yield from (f"{name}: {one}" for pair in given for one in filter(None, pair) if one not in spec)
    for place in re.findall(r"\bclient\.([a-z_.]+)\(", step):
        try:
            attrgetter(place)(_CLIENT)
        except AttributeError:
            yield place


def _unknown(program: str, words: list[str]) -> Iterator[str]:
    command: click.Command = offline if program == "pulumi" else main
    if program == "pulumi" and words[0] in _ELSEWHERE:
        return
    context = click.Context(command)
    while words and isinstance(command, click.Group) and (found := command.get_command(context, words[0])):
        command, words = found, words[1:]
    if command in (offline, main):
        yield f"{program} {words[0]}"
    known = {option for parameter in command.get_params(context) for option in parameter.opts}
    yield from (f"{program}: {word}" for word in words if word.startswith("--") and word not in known)


_CLIENT = Client("vk_live_" + "a" * 40, "http://127.0.0.1:1/v1")
_VARIABLES = {*SETTINGS.values(), TIMEOUT_VARIABLE}
