"""Finds private words: names and phrases that only this project would use, with the word of the field in
their place.

``tools/words.txt`` holds one rule per line: a regular expression, a tab, the plain words. Names such as
``noun_modules`` and ``NounError`` are found as well as prose. A line that must use such a word ends with the
comment ``# words: reason``.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
RULES = Path(__file__).with_suffix(".txt")
SKIPPED = re.compile(
    r"LICENSE|.*COPYING|.*\.lock|.*package-lock\.json|tools/words\.(py|txt)|tests/test_words\.py|tests/offline/recordings/.*|tests/transcripts/recorded/.*|tests/fixtures/states/[0-9].*|tests/certify/hosting-client-api-v1\.md|.*\.(png|pdf|svg)"
)


DOCUMENT = ROOT / "tests" / "certify" / "hosting-client-api-v1.md"
QUOTING = ("docs/certify.md", "pulumi_hosting/certify/document.json")
"""Files that quote the API document: its own words are allowed there."""

Rule = tuple[re.Pattern[str], str]


def rules() -> Iterator[Rule]:
    """Every rule: what is not to be written, and what to write."""
    for line in RULES.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pattern, _, plain = line.partition("\t")
            yield re.compile(rf"(?<![A-Za-z])(?:{pattern})(?![a-z])", re.IGNORECASE), plain


def findings(text: str, known: Sequence[Rule] | None = None) -> Iterator[tuple[int, str, str]]:
    """Line number, what was found, what to write."""
    known = list(rules()) if known is None else known
    for number, line in enumerate(text.splitlines(), start=1):
        if "# words:" in line:
            continue
        # NounError -> Noun Error, noun_error -> noun error: a name is read word by word.
        apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", line).replace("_", " ")
        for pattern, plain in known:
            if match := pattern.search(apart):
                yield number, match.group(0), plain


def main() -> int:
    """Print every finding; 1 if there is any."""
    names = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    names += sys.argv[1:]
    count, known = 0, list(rules())
    quoted = {found for _, found, _ in findings(DOCUMENT.read_text(encoding="utf-8"), known)}
    for name in names:
        path = ROOT / name
        if SKIPPED.fullmatch(name) or not path.is_file():
            continue
        for number, found, plain in findings(path.read_text(encoding="utf-8"), known):
            if name in QUOTING and found in quoted:
                continue
            print(f"{name}:{number}: {found!r}: write {plain}")
            count += 1
    if count:
        print(f"{count} private words. Next: write the words on the right", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
