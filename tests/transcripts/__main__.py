"""Play the scripts and compare what is seen with the recordings: ``python -m tests.transcripts``."""

import argparse
import os
import sys
import time
from collections import Counter

from tests.transcripts.recording import Broken, difference, play_all, remove_old, write
from tests.transcripts.scripts import Script, scripts

DIFFERENT, BROKEN = "different", "not playable"


def main() -> int:
    """Exit 1 where something differs, 2 where a script cannot be played."""
    parser = argparse.ArgumentParser(prog="python -m tests.transcripts", description=__doc__)
    parser.add_argument("--write", action="store_true", help="record again")
    parser.add_argument("--only", default="", help="scripts whose name contains this")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    chosen = [script for script in scripts() if options.only in str(script)]
    if not chosen:
        print(f"no script has {options.only!r} in its name", file=sys.stderr)
        return 2
    began, found = time.monotonic(), Counter[str]()
    for script, text in play_all(chosen, options.jobs):
        found[_record(script, text) if options.write else _compare(script, text)] += 1
    if options.write and not options.only:
        remove_old()
    commands = sum(script.commands for script in chosen)
    outcome = ", ".join(f"{count} {word}" for word, count in sorted(found.items()))
    used = os.times()
    cpu = used.user + used.system + used.children_user + used.children_system
    print(
        f"{len(chosen)} scripts with {commands} commands: {outcome} "
        f"({time.monotonic() - began:.0f} s, {cpu:.0f} CPU seconds)"
    )
    return 2 if found[BROKEN] else 1 if found[DIFFERENT] else 0


def _record(script: Script, text: str | Broken) -> str:
    if isinstance(text, Broken):
        return _broken(text)
    write(script, text)
    return "recorded"


def _compare(script: Script, text: str | Broken) -> str:
    if isinstance(text, Broken):
        return _broken(text)
    lines = difference(script, text)
    if lines:
        print(f"{DIFFERENT}: {script}", *lines, "", sep="\n", flush=True)
    return DIFFERENT if lines else "as recorded"


def _broken(error: Broken) -> str:
    print(error, file=sys.stderr, flush=True)
    return BROKEN


if __name__ == "__main__":
    sys.exit(main())
