"""What is refused on standard input names a file in its next step: ``-`` is none that a shell writes."""

import pytest
from click.testing import CliRunner

from pulumi_hosting.cli import main


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            ["cost", "-"],
            "standard input is neither a preview nor the result of a check run. Next: "
            "pulumi preview --json > preview.json",
        ),
        (["recover", "-"], "standard input is not a stack export. Next: pulumi stack export > stack.json"),
    ],
)
def test_what_is_refused_on_standard_input_names_a_file(command: list[str], told: str) -> None:
    answer = CliRunner().invoke(main, command, input="{}", env={"HOSTING_API_KEY": ""})
    assert (answer.exit_code, answer.stdout, answer.stderr) == (2, "", f"error: {told}\n")


def test_standard_input_that_is_not_json_is_named() -> None:
    answer = CliRunner().invoke(main, ["recover", "-"], input="x", env={"HOSTING_API_KEY": ""})
    told = "standard input cannot be read: it is not JSON. Next: pass the output of pulumi stack export"
    assert (answer.exit_code, answer.stderr) == (2, f"error: {told}\n")
