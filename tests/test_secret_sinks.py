"""Where secrets are looked for: every place that a person or a program could read, and the test that searches
it for API keys, passwords, auth codes, webhook secrets or private keys.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.secret_searches import why_not

_FAILURE = "tests/client/test_secrets.py::test_no_failure_shows_a_secret"
_CLIENT = "tests/client/test_secrets.py::test_a_client_shows_its_key_nowhere"
_RESULT = "tests/client/test_secrets.py::test_what_is_shown_once_is_not_shown_by_accident"
_PULUMI = "tests/pulumi/test_secrets.py::test_nothing_shows_a_secret"
_ANSIBLE = "tests/ansible/test_secrets.py::test_no_secret_is_shown_or_kept"
_KILLED = "tests/crash/test_kill_matrix.py::test_killed_and_run_again_nothing_is_bought_twice_or_lost"

SINKS: Mapping[str, str] = {
    "message of an error": _FAILURE,
    "repr of an error": _FAILURE,
    "attributes of an error": _FAILURE,
    "log of the client at DEBUG": _FAILURE,
    "lines of HOSTING_LOG=debug": "tests/client/test_debug_log.py::test_no_line_holds_a_secret",
    "traceback": _FAILURE,
    "local variables of our frames": _FAILURE,
    "cause and context of an error": _FAILURE,
    "pickled error": "tests/client/test_damage.py::test_an_error_can_be_pickled_and_copied",
    "error of a proxy": (
        "tests/client/test_transport.py::test_https_goes_through_the_proxy_of_the_environment"
    ),
    "error of a wrong base URL": (
        "tests/client/test_settings.py::test_addresses_that_are_refused_without_being_shown"
    ),
    "error of an answer of another shape": (
        "tests/client/test_malformed_responses.py"
        "::test_each_required_field_of_a_wrong_type_is_named_without_its_value"
    ),
    "repr and attributes of the client": _CLIENT,
    "repr and attributes of transport and settings": _CLIENT,
    "pickle of client, services, secrets": (
        "tests/client/test_secrets.py::test_nothing_that_holds_a_secret_can_be_pickled"
    ),
    "copy of a client": "tests/client/test_secrets.py::test_a_client_cannot_be_copied",
    "repr of a result": _RESULT,
    "JSON of a result": _RESULT,
    "fields of a result that echo the key": (
        "tests/client/test_damage.py::test_the_own_key_in_an_answer_is_not_in_a_result"
    ),
    "repr of checked inputs and of differences": (
        "tests/planning/test_check_and_diff.py::test_what_was_checked_does_not_show_its_secrets"
    ),
    "reasons of refused inputs": (
        "tests/provider/test_checks.py::test_a_check_asks_the_account_where_only_it_can_tell"
    ),
    "failures of the dynamic provider": (
        "tests/provider/test_dynamic.py::test_a_defect_is_reported_without_values"
    ),
    "failures of the native provider": (
        "tests/provider/test_plugin.py::test_a_failed_check_names_its_field_in_the_reason_alone"
    ),
    "failure of the command that prints the key": (
        "tests/client/test_key_sources.py"
        "::test_what_the_command_prints_as_its_error_is_shown_and_its_output_never"
    ),
    "failure of the file that holds the key": (
        "tests/client/test_key_sources.py::test_a_key_in_place_of_a_path_or_a_command_is_not_shown"
    ),
    "output of Ansible with a key of a command": (
        "tests/ansible/test_key_command.py::test_a_playbook_asks_the_command_once_for_all_tasks"
    ),
    "failures of its configuration": (
        "tests/provider/test_plugin_protocol.py::test_wrong_settings_are_refused_by_name"
    ),
    "repr of a message of the engine": "tests/provider/test_wire.py::test_nothing_received_is_shown",
    "repr of a program's arguments": "tests/provider/test_classes.py::test_args_do_not_print_secrets",
    "refused arguments of a lookup": "tests/provider/test_lookups.py::test_a_refused_value_is_not_repeated",
    "output of Pulumi at -v=9 with --diff": _PULUMI,
    "state, backups and history of a stack": _PULUMI,
    "export of a stack": _PULUMI,
    "preview of Pulumi": (
        "tests/pulumi/test_preview.py::test_wrong_input_is_refused_in_the_preview_by_its_field"
    ),
    "settings file of a stack": (
        "tests/pulumi/test_secrets.py::test_a_key_in_the_configuration_is_encrypted_wherever_it_is_kept"
    ),
    "output of Ansible at -vvvv with --diff": _ANSIBLE,
    "files that a playbook leaves": _ANSIBLE,
    "output of Ansible with ANSIBLE_DEBUG": (
        "tests/ansible/test_secrets.py::test_ansible_debug_shows_no_secret"
    ),
    "messages of killed runs and of the runs after them": _KILLED,
    "names and content of lock files and notes": _KILLED,
    "idempotency keys and all other headers but the key's": _KILLED,
    "log of requests of the emulator": "tests/emulator/test_control.py::test_requests",
    "objects of the emulator": "tests/emulator/test_control.py::test_objects_show_no_secret",
    "state file of the emulator": "tests/emulator/test_state_file.py::test_a_state_file_holds_no_password",
    "names of subscriptions in an audit": (
        "tests/reports/test_audit.py::test_the_secret_of_a_url_that_a_run_reported_is_not_shown"
    ),
    "names of subscriptions in a cost report": (
        "tests/reports/test_cost.py::test_the_secret_of_a_url_is_not_shown"
    ),
    "names of subscriptions in a rehearsal": (
        "tests/test_account_check.py::test_the_secret_of_a_url_is_in_no_label"
    ),
    "options of the webhook receiver": "tests/webhooks/test_options.py::test_no_secret_is_shown",
    "repr of the offline engine's encryption": "tests/offline/test_secrets.py::test_a_crypter_shows_nothing",
}


@pytest.mark.parametrize("sink", SINKS)
def test_a_test_searches_it(sink: str) -> None:
    assert why_not(SINKS[sink]) is None


def test_there_are_many() -> None:
    assert len(SINKS) >= 25


SEARCHES = {
    "the literal": """
def test_it():
    assert "canary" not in repr(Thing("canary-1"))
""",
    "a helper that lists": """
def hits(secret, text):
    return [line for line in text.splitlines() if secret in line]

def test_it(tmp_path):
    secret = "canary"
    assert hits(secret, run(secret)) == []
""",
    "a helper that asserts": """
CANARY = "canary"

def assert_unseen(text):
    assert CANARY not in text

def test_it():
    assert_unseen(run(CANARY))
""",
}
NO_SEARCHES = {
    "asserts nothing of a secret": (
        """
def test_it():
    assert run("canary").exit_code == 0
""",
        """
def hits(secret, text):
    return [line for line in text.splitlines() if secret in line]

def test_it():
    hits("canary", run("canary"))
""",
        """
CANARY = "canary"

def test_another():
    assert CANARY not in run(CANARY)

def test_it():
    run(CANARY)
""",
        """
def test_it():
    assert "canary" in run("canary")
""",
    ),
    "searches for what it nowhere uses": (
        """
def test_it():
    assert "canary" not in run("something else")
""",
    ),
}


def judged(source: str, folder: Path) -> str | None:
    path = folder / "test_it.py"
    path.write_text(source, encoding="utf-8")
    return why_not(f"{path}::test_it")


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_is_recognized(name: str, tmp_path: Path) -> None:
    assert judged(SEARCHES[name], tmp_path) is None


@pytest.mark.parametrize(
    ("why", "source"), [(why, source) for why, sources in NO_SEARCHES.items() for source in sources]
)
def test_what_finds_no_secret_is_no_search(why: str, source: str, tmp_path: Path) -> None:
    assert why in str(judged(source, tmp_path))


def test_a_missing_test_is_no_search() -> None:
    assert (
        why_not("tests/test_secret_sinks.py::test_nothing")
        == "tests/test_secret_sinks.py has no test_nothing"
    )
    assert why_not("tests/test_nothing.py::test_it") == "there is no file tests/test_nothing.py"
