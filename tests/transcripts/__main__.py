"""Play the scripts and compare what is seen with the recordings: ``python -m tests.transcripts``."""

import argparse
import sys
import time
from collections.abc import Iterable

from tests.transcripts.recording import RECORDED, by_group, difference, play_all
from tests.transcripts.scripts import Script, scripts


def main() -> int:
    """Exit 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.transcripts", description=__doc__)
    parser.add_argument("--write", action="store_true", help="record again")
    parser.add_argument("--only", default="", help="scripts whose name contains this; they are compared only")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    chosen = [script for script in scripts() if options.only in str(script)]
    if not chosen or (options.write and options.only):
        print("no such script" if not chosen else "--write records all scripts", file=sys.stderr)
        return 2
    began = time.monotonic()
    played = list(play_all(chosen, options.jobs))
    differing = _write(played) if options.write else sum(map(_show, played))
    commands = sum(script.commands for script in chosen)
    print(
        f"{len(chosen)} scripts, {commands} commands in {time.monotonic() - began:.0f} s: "
        + ("recorded" if options.write else f"{differing} differ")
    )
    return 1 if differing else 0


def _write(played: Iterable[tuple[Script, str]]) -> int:
    RECORDED.mkdir(exist_ok=True)
    for old in RECORDED.glob("*.txt"):
        old.unlink()
    for name, text in by_group([*played]).items():
        (RECORDED / name).write_text(text, encoding="utf-8")
    return 0


def _show(one: tuple[Script, str]) -> bool:
    script, text = one
    found = difference(script, text)
    if found:
        print(f"differs: {script}", *found, "", sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
