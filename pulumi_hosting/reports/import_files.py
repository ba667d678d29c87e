"""Everything that is on the account, written as the files of a program or a playbook."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from pulumi_hosting.reports import import_playbook, import_program
from pulumi_hosting.reports.account_import import AccountImport, Steps, Written, account_import, next_steps
from pulumi_hosting.reports.account_objects import named, read_account
from pulumi_hosting.reports.report import Asking, CannotAnswer, Report, Section, Table, Unusable, plural


def run(asking: Asking, directory: Path, form: Literal["dynamic", "native", "ansible"]) -> Report:
    _must_be_free(directory, import_playbook.FILES if form == "ansible" else import_program.FILES)
    with asking() as (request, step):
        if request.client.is_test_key:
            raise Unusable(
                "HOSTING_API_KEY is a test key, with which objects are only simulated. Next: set a live key "
                "that may read servers, domains and webhooks"
            )
        found = account_import(read_account(request, step))
    if not found.declared:
        made = Written({}, ())
    elif form == "ansible":
        made = import_playbook.playbook(found)
    else:
        made = import_program.program(found, form, directory.resolve().name)
    if made.files:
        _write(directory, made.files)
    written = [str(directory / name) for name in made.files]
    warnings = [*map(str, found.left_out), *(one.remark for one in found.declared if one.remark)]
    warnings += [f"{plural(kind)} were not read: {reason}" for kind, reason in found.unread.items()]
    sections = [*_sections(found, directory, written, made.steps)]
    return Report(_facts(found, written, made.steps), sections, warnings, 1 if found.unread else 0)


def _must_be_free(directory: Path, names: tuple[str, ...]) -> None:
    there = [str(directory / name) for name in names if (directory / name).exists()]
    if there:
        raise Unusable(
            f"{' and '.join(there)} exist{'' if there[1:] else 's'} already; nothing was written. Next: give "
            "another directory"
        )


def _write(directory: Path, files: Mapping[str, str]) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            with (directory / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise CannotAnswer(f"{directory} cannot be written to: {error.strerror or error}") from None


def _sections(found: AccountImport, directory: Path, written: list[str], steps: Steps) -> Iterator[Section]:
    if not written and found.unread:
        unread = ", ".join(map(plural, found.unread))
        yield f"There is nothing to be declared in what was read; nothing was written. Not read: {unread}."
        return
    if not written:
        yield "There is nothing on the account to be declared; nothing was written."
        return
    yield Table(("KIND", "DECLARED"), [*found.counts().items()])
    if secrets := found.secrets():
        yield ""
    for one, field, _ in secrets:
        yield f"left as configuration, as it may hold a secret: {one.value_of(field)} ({one.object.name})"
    yield f"\nwritten: {', '.join(written)}\n\nNext:"
    for line in next_steps((("cd " + str(directory), ""), *steps)):
        yield f"  {line}"


def _facts(found: AccountImport, written: list[str], steps: Steps) -> dict[str, object]:
    return {
        "written": written,
        "declared": [{**named(one.object), "name": one.name} for one in found.declared],
        "configuration": [
            {"kind": one.object.kind, "id": one.object.id, "field": field, "name": variable}
            for one, field, variable in found.secrets()
        ],
        "left_out": [
            {"kind": one.object.kind, "id": one.object.id, "field": one.field, "reason": one.reason}
            for one in found.left_out
        ],
        "not_read": dict(found.unread),
        "next": [command for command, _ in steps],
    }
