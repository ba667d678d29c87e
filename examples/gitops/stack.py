"""A Pulumi stack: its plan, its update, its drift, and the stacks of pull requests."""

import json
import re
import shlex
from collections.abc import Container, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from plan import CLOSED_TO_TEST_KEYS, Change, Drift, Managed, Plan, Run, Stop, last_line, run, setting

NO_CHANGE = ("same", "read", "refresh", "discard")
ENDED = ("suspended", "expired", "pending_cancel")
RENEWAL = re.compile(
    r"(?:(?P<name>.+?): )?(?:warning: )?(?:will|would) charge (?P<amount>[\d.]+) \w* \(.* from \d{4}-"
)
"""What the provider says of a renewal that keepPaid asks for; in front, the name of a dynamic resource."""
GONE = re.compile(r"(.+?): warning: .*, and the state still has it")
"""What a dynamic resource says of an object that is gone: an update, which changes nothing."""
REPLACES = ("replace", "create-replacement", "delete-replaced")
UNCHECKED = {
    "WebhookSubscription": "event types",
    "ServerIp": "addresses of the server",
    "Ptr": "addresses of the server",
}
"""What a preview with a test key leaves out."""


class Stack:
    """A stack of the program in PROJECT."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.directory = Path(setting("PROJECT", "."))

    def pulumi(self, environ: Mapping[str, str], *arguments: str) -> Run:
        names_it = arguments[0] == "stack" and arguments[1] != "export"
        chosen = () if names_it else ("--stack", self.name)
        command = [*shlex.split(setting("PULUMI", "pulumi")), *arguments, *chosen, "--non-interactive"]
        return run(command, self.directory, environ)

    def plan(self, environ: Mapping[str, str]) -> Plan:
        done = self.pulumi(environ, "preview", "--json", "--show-sames")
        try:
            found = json.loads(done.stdout)
        except ValueError:
            return Plan(error=last_line(done.output), details=done.output)
        _refuse_stored_keys(found)
        said = [(item["severity"], str(item["message"]).strip()) for item in found.get("diagnostics") or ()]
        messages = [text for _, text in said]
        failures = [text for severity, text in said if severity == "error"]
        # A dynamic resource says it in a line of the severity info.
        warned = [text for severity, text in said if severity == "warning" or ": warning: " in text]
        renewals = {
            str(item.get("urn") or line["name"]): Decimal(line["amount"])
            for item in found.get("diagnostics") or ()
            if (line := RENEWAL.match(str(item["message"]).strip()))
        }
        beside = {*renewals, *(line[1] for text in messages if (line := GONE.match(text)))}
        changes = [_change(step) for step in _changing(found.get("steps") or (), beside)]
        unchecked = [text for text in messages if CLOSED_TO_TEST_KEYS.search(text)]
        if environ["HOSTING_API_KEY"].startswith("vk_test_"):
            kinds = [(change, change.name.partition(" ")[0]) for change in changes]
            unchecked += [f"{change.name}: {UNCHECKED[kind]}" for change, kind in kinds if kind in UNCHECKED]
        return Plan(
            changes=changes,
            unchecked=unchecked,
            warnings=[text.replace("warning: ", "", 1) for text in warned if text not in unchecked],
            renewals=sum(renewals.values(), Decimal(0)),
            error=last_line("\n".join(failures) or done.stderr) if done.code else "",
            details="\n".join([*messages, done.stderr]),
            source=done.stdout,
        )

    def apply(self, environ: Mapping[str, str]) -> Run:
        """With its preview: there the limit refuses before anything is ordered."""
        return self.pulumi(environ, "up", "--yes")

    @property
    def repair(self) -> str:
        """What a person runs about drift."""
        return f"pulumi up --refresh --stack {self.name}"

    def drift(self, environ: Mapping[str, str], folder: Path) -> Drift:
        """A refresh that changes nothing, and the export of the stack."""
        done = self.pulumi(environ, "refresh", "--preview-only", "--expect-no-changes", "--diff")
        return Drift(done, self.export(folder / "0.json"))

    def export(self, file: Path) -> Managed:
        exported = self.pulumi({}, "stack", "export")
        if exported.code:
            reason = last_line(exported.stderr).partition(". Next: ")[0]
            line = f"stack {self.name} cannot be exported: {reason}. Next: correct STACK or OTHER_STACKS"
            return Managed([], [line])
        file.write_text(exported.stdout, encoding="utf-8")
        return Managed(["--stack", str(file)], [])

    # --- the stack of a pull request

    def try_out(self, environ: Mapping[str, str]) -> tuple[bool, str]:
        """Bring the stack up, expect no change after that, destroy and remove it. Whether that went well, and
        what was printed; the last line is the result.
        """
        self.remove(environ)
        text, result = "", "up, up again without a change, destroyed, removed"
        steps = [
            ("stack", "init", self.name),
            *(("config", "set", *entry.split("=", 1)) for entry in program_config()),
            ("up", "--yes", "--skip-preview"),
            ("up", "--yes", "--skip-preview", "--expect-no-changes"),
            ("refresh", "--preview-only", "--expect-no-changes"),
        ]
        is_well = True
        try:
            for step in steps:
                done = self.pulumi(environ, *step)
                text += f"$ pulumi {' '.join(step[:2])}\n{done.output}\n"
                if done.code:
                    is_well, result = False, f"pulumi {step[0]}: {last_line(done.output)}"
                    break
        finally:
            removed = self.remove(environ)
            text += removed.output
        if is_well and removed.code:
            is_well, result = False, f"pulumi destroy: {last_line(removed.output)}"
        return is_well, f"{text}\n{result}"

    def remove(self, environ: Mapping[str, str]) -> Run:
        """Destroy and remove the stack, also when a job was cancelled in the middle of a command. What cannot
        be destroyed is forgotten: it is simulated, or the program adopted it and a test key cannot change it.
        The code is that of the destruction. Nothing is printed if there is no such stack.
        """
        listed = self.pulumi(environ, "stack", "ls", "--json")
        if listed.code:
            raise Stop(f"the stacks cannot be listed: {last_line(listed.stderr)}")
        if self.name not in [row["name"].rpartition("/")[2] for row in json.loads(listed.stdout or "[]")]:
            return Run(0, "")
        self.pulumi(environ, "cancel", "--yes")  # fails if nothing is locked
        self.pulumi(environ, "refresh", "--yes", "--skip-preview", "--clear-pending-creates")
        self.pulumi(environ, "state", "unprotect", "--all", "--yes")
        done = self.pulumi(environ, "destroy", "--yes", "--skip-preview")
        gone = self.pulumi(environ, "stack", "rm", "--yes", *(["--force"] if done.code else []), self.name)
        if gone.code:
            raise Stop(f"stack {self.name} could not be removed: {last_line(gone.output)}")
        return Run(done.code, f"$ pulumi destroy\n{done.output}\n")


def program_config() -> list[str]:
    """What the program requires of a stack's configuration: no secrets. One KEY=VALUE on each line."""
    return [line.strip() for line in setting("PROGRAM_CONFIG", "").splitlines() if line.strip()]


def _changing(steps: Iterable[Mapping[str, Any]], beside: Container[str]) -> list[Mapping[str, Any]]:
    """One step for each resource that changes: engines write a replacement as one step or as three."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for step in steps:
        if step["op"] not in NO_CHANGE and _kind(step) != "Stack" and not _is_of_paid_time(step, beside):
            op = "replace" if step["op"] in REPLACES else step["op"]
            known = found.setdefault((step["urn"], op), {"urn": step["urn"], "op": op})
            known |= {part: step[part] for part in ("oldState", "newState", "detailedDiff") if step.get(part)}
    return list(found.values())


def _is_of_paid_time(step: Mapping[str, Any], beside: Container[str]) -> bool:
    """Whether nothing of the object is changed: its paid time is over, it is gone, or it is renewed as
    keepPaid says. Each may come between a review and the merge. ``beside``: URNs of those that are renewed,
    and names of dynamic resources that are renewed or gone."""
    old, new = step.get("oldState") or {}, step.get("newState") or {}
    is_over = (old.get("outputs") or {}).get("status") in ENDED
    is_beside = step["urn"] in beside or step["urn"].rpartition("::")[2] in beside
    differs = {*(step.get("detailedDiff") or ())}
    if step["op"] != "update" or _inputs(old) != _inputs(new):
        return False
    return is_over or differs == {"status"} or (is_beside and differs <= {"status", "keepPaid"})


def _change(step: Mapping[str, Any]) -> Change:
    old, new = step.get("oldState") or {}, step.get("newState") or {}
    before, after = _inputs(old), _inputs(new)
    facts = {"op": step["op"], "urn": step["urn"], "id": old.get("id", ""), "inputs": after}
    names = [name for name in {*before, *after} if new and before.get(name) != after.get(name)]
    if not names:  # the account differs from the inputs, which are as before
        before, names = old.get("outputs") or {}, [*(step.get("detailedDiff") or ())]
    fields = {name: (before.get(name), after.get(name)) for name in names}
    return Change(step["op"], f"{_kind(step)} {step['urn'].rpartition('::')[2]}", facts, fields)


def _kind(step: Mapping[str, Any]) -> str:
    """``Server`` of ``hosting:index:Server``."""
    type: str = step["urn"].split("::")[2]
    return type.rpartition(":")[2]


def _inputs(state: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in (state.get("inputs") or {}).items() if not name.startswith("__")}


def _refuse_stored_keys(found: Mapping[str, Any]) -> None:
    """A key in the configuration or among a provider's arguments is saved in the state. A store's address
    that is no secret of the configuration shows its password."""
    config = found.get("config") or {}
    places = [name for name in config if name == "hosting:apiKey"]
    places += [name for name in config if name == "hosting:store" and "@" in str(config[name])]
    for step in found.get("steps") or ():
        if "pulumi:providers:" in step["urn"] and "apiKey" in _inputs(step.get("newState") or {}):
            places.append(step["urn"])
    if places:
        raise Stop(
            f"an API key or password is stored with the stack ({', '.join(places)}). Next: remove it; it "
            "comes from the environment of the job"
        )
