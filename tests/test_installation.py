"""What messages and pages say is to be installed: nothing by a name that is not registered yet."""

import re
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from pulumi_hosting import installation
from tests.test_layout import tracked_files

ROOT = Path(__file__).parent.parent
BY_NAME = re.compile(
    r"""pip\ install\ [^\n`]*?(?<![./\w*])pulumi-hosting(?!\w|/)   # pip install 'pulumi-hosting[pulumi]'
      | collection\ install\ [^\n`]*?(?<![./\w])hosting\.cloud\b
      | ^\s*-\ pulumi-hosting\s*$ | ^pulumi-hosting\[               # files that pip and ansible-builder read
      | ^\s*-\ name:\ hosting\.cloud\s*$""",
    re.VERBOSE | re.MULTILINE,
)


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (
            '{"url": "file:///FOLDER", "dir_info": {"editable": true}}',
            "pip install -e 'FOLDER[pulumi,emulator]'",
        ),
        ('{"url": "file:///FOLDER", "dir_info": {}}', "pip install 'FOLDER[pulumi,emulator]'"),
        (
            '{"url": "file:///FOLDER/gone.whl", "archive_info": {}}',
            "pip install '.[pulumi,emulator]' in a clone of it",
        ),
        (
            '{"url": "https://git.example/x.git", "vcs_info": {"vcs": "git", "commit_id": "1"}}',
            "pip install 'pulumi-hosting[pulumi,emulator] @ git+https://git.example/x.git'",
        ),
        ("{", "pip install '.[pulumi,emulator]' in a clone of it"),
        (None, "pip install '.[pulumi,emulator]' in a clone of it"),
    ],
)
def test_the_command_is_the_one_that_installed_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, origin: str | None, command: str
) -> None:
    class Recorded(Distribution):
        def read_text(self, filename: str) -> str | None:
            assert filename == "direct_url.json"
            return origin and origin.replace("/FOLDER", str(tmp_path))

        def locate_file(self, path: object) -> Path:
            raise AssertionError(path)

    monkeypatch.setattr(installation, "distribution", lambda name: Recorded())
    wanted = command.replace("FOLDER", str(tmp_path))
    assert installation.install_extras("pulumi", "emulator") == (
        f"install the extra pulumi,emulator of pulumi-hosting: {wanted}"
    )


def test_nothing_is_installed_by_a_name_that_is_not_published() -> None:
    texts = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in tracked_files()
        if path.suffix in (".py", ".md", ".rst", ".yml", ".txt", ".j2")
        and not path.is_relative_to(ROOT / "tests")
    }
    found = [f"{name}: {match[0]}" for name, text in texts.items() for match in BY_NAME.finditer(text)]
    assert [line.partition(":")[0] for line in found] == ["README.md"] * 2, found  # "once they are published"
