"""One cell: a purchase, what the account does, a pause, the next command, and what follows until it is as
declared."""

import re
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from tests.between_runs.cases import A_MOMENT, DAY, DOMAINS, ONLY_LOOKING, PLENTY, REMOVING, WAIT, Cell
from tests.between_runs.sentences import false_sentences
from tests.between_runs.world import Run, World
from tests.crash.account import objects
from tests.crash.cell import own_runtime_directory

FURTHER = 2
"""So many further runs a command may need."""


@dataclass
class Result:
    """``problems``: broken promises. ``stop``: the message of a run that a person must decide,
    ``resolved_by``: what was done as it says. ``further``: how many further runs were needed."""

    cell: Cell
    problems: list[str] = field(default_factory=list)
    stop: str | None = None
    resolved_by: str | None = None
    further: int = 0
    story: list[str] = field(default_factory=list)


# --- what messages advise, and how it is done: what keeps a purchase comes before what makes another

Step = Callable[[World, str], object]


def _set(name: str) -> Step:
    return lambda world, value: world.overrides.update(
        {name: int(value) if name == "order_attempt" else value}
    )


def _replace(world: World, text: str) -> None:
    option, value, *_, instead = re.split(r":? ", text)
    world.overrides.update({option: value, instead: None})


def _leave(world: World, name: str) -> None:
    del world.stack.entries[name]
    world.is_left = True


def _unlock(world: World, _: str) -> None:
    path, change = (
        ("{it}", {"blocked": False}) if world.cell.purchase in DOMAINS else ("", {"status": "active"})
    )
    world.happens((("PATCH", path or "/servers/{server}", change),))


ADVICE: tuple[tuple[str, Step], ...] = (
    (r"set (\w+: [0-9]+ in place of (?:the )?\w+)", _replace),
    (r"adopt_id(?: to |=)\"?([0-9]+)", _set("adopt_id")),
    (r"\bid(?:=|: )\"?([0-9]+)", _set("id")),
    (r"order_attempt(?: to |=|: )([0-9]+)", _set("order_attempt")),
    (r"correct (name|server_name)\b", lambda world, option: world.overrides.update({option: "renamed"})),
    (r"top up()", lambda world, _: world.control("PATCH", "/account", PLENTY)),
    (r"use a key of its account()", lambda world, _: setattr(world.network, "live_key", world.key)),
    (r"contact the provider()", _unlock),
    (r"(waits for it until seven days)", lambda world, _: world.wait()),
    (r"pulumi up, (which waits for it)", lambda world, _: world.wait()),
    (r"pulumi (?:up --)?refresh()", lambda world, _: world.run("refresh")),
    (r"pulumi up()", lambda world, _: world.run("up")),
    (r"(leave it out): ", lambda world, _: world.remove()),
    (r"run (?:it )?again (later|then)", lambda world, _: world.wait()),
    (r"run (?:it |the playbook )?again()", lambda world, _: None),
)
_STATE_DELETE = r"pulumi state delete '[^']+::(\w+)'"
_THAT_ONE = r"\(id ([0-9]+)\).*adopt_id to that one"
_NOTHING_OWED = "nothing is owed"


def follow(world: World, message: str) -> str | None:
    """Do what the message advises; what it was, or None where nothing of it is known."""
    advice = message.rpartition("Next:")[2]
    steps = [(_THAT_ONE, message, _set("adopt_id"))]
    steps += [(pattern, advice, step) for pattern, step in ADVICE]
    # what is to be removed here is left to whoever has it, else taken back
    steps.insert(0 if world.cell.command in REMOVING else len(steps), (_STATE_DELETE, advice, _leave))
    for pattern, text, step in steps:
        if match := re.search(pattern, text):
            done = "adopt_id to that one" if pattern == _THAT_ONE else match[0]
            world.story.append(f"a person: {done}")
            step(world, match[1])
            return done
    return None


# --- what must hold


@cache
def reference(form: str, purchase: str, pause: float) -> Counter[str]:
    """What lives after an undisturbed purchase."""
    world = World(Cell(form, purchase, "nothing", pause, ""))
    with own_runtime_directory():
        world.prepare()
        for seconds in (WAIT, pause):
            world.run(world.cell.apply)
            world.network.sleep(seconds)
        assert world.run(_again(world.cell, "")).failure is None, world.story
        return objects(world.network.control)


def _again(cell: Cell, latest: str) -> str:
    """The command that follows ``latest``: after a preview what was previewed."""
    if cell.command in REMOVING:
        return cell.command
    return "up --refresh" if cell.apply == "up" and latest != "preview" else cell.apply


def differences(world: World) -> list[str]:
    """How the account differs from what is declared, and from what the frontend manages."""
    cell, found = world.cell, [*world.problems(), *world.unmet()]
    if world.is_removed:
        return found
    if cell.command in REMOVING:
        left = world.holdings() - world.event.loses
        if left > 0 and cell.purchase not in DOMAINS and not world.said_to_stay:
            found.append(f"{left} of it left")
        if cell.event == "another's tag" and cell.form != "ansible" and not (left or world.overrides):
            found.append("what another resource had taken over was deleted")
        return found + ["it is in the state"] * ("it" in world.stack.entries)
    shows = dict(world.event.shows or {})
    if cell.form == "ansible":  # it does not manage the server of an address or of a renewal
        shows["renamed"] = "web"
    if (
        cell.purchase == "domain 202" and cell.pause == 0
    ):  # it may still be pending, and cannot be changed then
        shows["False"] = "True"

    def shown(counted: Counter[str]) -> Counter[str]:
        words = (name.split(" ") for name in counted.elements())
        return Counter(" ".join(shows.get(word, word) for word in name) for name in words)

    living = shown(objects(world.network.control))
    declared = shown(reference(cell.form, cell.purchase, cell.pause))
    found += [f"too much: {name}" for name in (living - declared).elements()]
    if world.may_be_unlisted:
        return found
    return found + [f"missing: {name}" for name in (declared - living).elements()]


def broken_promises(world: World, run: Run) -> list[str]:
    """What a single run broke."""
    found, most = false_sentences(world, run), 1 + world.event.loses
    if (held := world.holdings()) > most:
        found.append(f"after {run.command}: {held} of it")
    if (spent := world.spent()) > most:
        found.append(f"after {run.command}: charged {spent} times")
    if run.command not in ("up", "up --refresh", "task") and run.debits():
        found.append(f"{run.command} was charged")
    if run.command in ("preview", "check") and run.writes:
        found.append(f"{run.command} wrote {run.writes}")
    return found


def run(cell: Cell) -> Result:
    """Run one cell. A defect is a broken promise too."""
    result = Result(cell)
    try:
        with own_runtime_directory():
            world = World(cell)
            result.story = world.story
            _run(world, result)
    except Exception:  # noqa: BLE001  # reported with the cell that repeats it
        result.problems.append(traceback.format_exc(limit=-8))
    return result


def _run(world: World, result: Result) -> None:
    cell = world.cell

    def runs(command: str) -> Run:
        made = world.run(command)
        result.problems.extend(broken_promises(world, made))
        return made

    world.prepare()
    runs(cell.apply)
    world.problems()  # what it manages now explains what is released later
    world.happens(world.event.at_once)
    world.network.sleep(cell.pause or A_MOMENT)
    world.story.append(f"{cell.pause / DAY:g} days")
    world.happens(world.event.later)
    latest = runs(cell.command)
    left = [] if latest.failure or cell.command in ONLY_LOOKING else differences(world)
    while (latest.failure or left or latest.command in ONLY_LOOKING) and result.further < FURTHER:
        if latest.failure and (_NOTHING_OWED in latest.failure or "key" in cell.event):
            break
        if latest.command not in ("preview", "check"):
            world.network.sleep(WAIT)
        result.further += 1
        latest = runs(_again(cell, latest.command))
        left = [] if latest.failure else differences(world)
    if latest.failure is None:
        result.problems += left
        return
    result.stop = latest.failure
    is_gone = cell.event.startswith("its ") and "there is no " in latest.failure
    if _NOTHING_OWED in latest.failure or is_gone:
        result.resolved_by = "nothing to do"
        return
    # a step that is only "unfinished" says in a line of its own what to do
    advising = [line for line in (latest.failure, *latest.lines) if "Next:" in line]
    result.resolved_by = follow(world, advising[0]) if advising else None
    if result.resolved_by is None:
        result.problems.append(f"a stop without a next step that is known: {latest.failure}")
        return
    for _ in range(FURTHER + world.has_waited):  # what is bought again may come late
        latest = runs(_again(cell, latest.command))
        if latest.failure is None:
            result.problems += differences(world)
            return
        if world.has_waited and latest.failure != result.stop:  # what was waited for has another end
            follow(world, latest.failure)
        world.network.sleep(WAIT)
    result.problems.append(f"{result.resolved_by} did not help: {latest.failure}")
