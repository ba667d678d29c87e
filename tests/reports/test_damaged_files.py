"""Files that no tool wrote: one line and exit code 2 from every command that reads one, never a traceback."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from pulumi_hosting.cli import main

STATE = '{"deployment": {"resources": [{"type": "hosting:index:Server", "urn": "u", "id": 5, %s}]}}'
FILES = {
    "preview": [
        '{"steps": 5}',
        '{"steps": [1]}',
        '{"steps": [{"op": "create", "urn": 5, "newState": 3}]}',
        '{"plays": [{"tasks": [1]}]}',
        '{"steps": [], "changeSummary": {"same": "x"}}',
        '{"steps": [], "diagnostics": 5}',
        '{"priced": [1]}',
    ],
    "export": [
        '{"deployment": 3}',
        '{"deployment": {"resources": 5}}',
        '{"deployment": {"resources": [1]}}',
        STATE % '"inputs": 4',
        STATE % '"outputs": []',
        '{"deployment": {"resources": [{}]}}',
        '{"deployment": {"pending_operations": [5]}}',
    ],
    "results": [
        '{"plays": 5}',
        '{"plays": [{"tasks": [1]}]}',
        '{"plays": [{"tasks": [{"hosts": 5}]}]}',
        '{"plays": [{"tasks": [{"hosts": {"a": 1}}]}]}',
        '{"failures": 5}',
    ],
}
COMMANDS = {
    "preview": [["cost"]],
    "export": [["audit", "--stack"], ["recover"]],
    "results": [["audit", "--results"], ["cost"]],
}


@pytest.mark.parametrize(
    ("command", "text"),
    [(command, text) for kind, texts in FILES.items() for command in COMMANDS[kind] for text in texts],
)
def test_a_damaged_file_is_one_line(tmp_path: Path, command: list[str], text: str) -> None:
    file = tmp_path / "given.json"
    file.write_text(text, encoding="utf-8")
    environ = {"HOSTING_API_KEY": "vk_live_" + "x" * 32, "HOSTING_BASE_URL": "http://127.0.0.1:9/v1"}
    ran = CliRunner().invoke(main, [*command, str(file)], env=environ)
    assert ran.exit_code == 2, ran.output
    assert "Next: " in ran.output
    assert "given.json" in ran.output
    assert isinstance(ran.exception, SystemExit)
