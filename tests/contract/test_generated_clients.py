"""The OpenAPI document is one that linters accept, and that other people's clients can be generated from."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import OPERATIONS
from tests.conftest import install_npm_packages
from tests.contract.harness import ApiHarness
from tests.contract.schema_cases import new_key

pytestmark = pytest.mark.slow
TYPESCRIPT = Path(__file__).parent / "typescript"
ACCEPTED = [
    # The API document has both paths; a fixed segment takes precedence.
    "no-ambiguous-paths #/paths/~1webhooks~1deliveries~1{delivery_id}"
]

NEED_MORE = {
    *("delete_server_ip", "set_server_ip_ptr", "pay_invoice"),
    *("get_order", "delete_ssh_key", "revoke_api_key"),
}
"""Operations that need an object which no other operation makes by its example."""


def run(*command: str | Path, cwd: Path) -> str:
    """What the program prints; fails with what it says if it fails."""
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture
def document(api_over_http: ApiHarness, tmp_path: Path) -> Path:
    """What the emulator of the dialect serves."""
    served = tmp_path / "openapi.json"
    served.write_text(json.dumps(api_over_http.live.openapi()))
    return served


@pytest.fixture(scope="session")
def typescript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the npm packages and programs of these tests."""
    folder = tmp_path_factory.mktemp("typescript")
    install_npm_packages(TYPESCRIPT, folder)
    for program in ("lint.js", "calls.ts"):
        copy(TYPESCRIPT / program, folder)
    return folder


@pytest.mark.program("node", "npm")
@pytest.mark.parametrize("dialect", ["spec", "live"], indirect=True)
def test_redocly_accepts_the_document(document: Path, typescript: Path) -> None:
    assert run("node", "lint.js", document, cwd=typescript).splitlines() == ACCEPTED


@pytest.mark.program("node", "npm")
@pytest.mark.parametrize("dialect", ["spec", "live"], indirect=True)
def test_a_client_in_typescript(api_over_http: ApiHarness, document: Path, typescript: Path) -> None:
    programs = typescript / "node_modules" / ".bin"
    run(programs / "openapi-typescript", document, "--output", "schema.d.ts", cwd=typescript)
    options = ("--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom")
    run(programs / "tsc", *options, "calls.ts", cwd=typescript)
    key = new_key(api_over_http, "live")
    assert int(run("node", "calls.js", api_over_http.base_url, key, cwd=typescript)) >= 20
    alive = [*api_over_http.living, *api_over_http.objects("domains")]
    assert [item["name"] for item in alive] == ["typed", "typed.com"]
    assert api_over_http.charges == 3  # both, and the renewal of the server


@pytest.mark.parametrize("dialect", ["spec", "live"], indirect=True)
def test_a_client_in_python(
    api_over_http: ApiHarness, document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: str
) -> None:
    """Every operation, with the examples of the document."""
    name, config = f"generated_{dialect}", tmp_path / "config.json"
    pdf = {"application/pdf": "application/octet-stream"}
    config.write_text(json.dumps({"post_hooks": [], "literal_enums": True, "content_type_overrides": pdf}))
    generator = (sys.executable, "-m", "openapi_python_client", "generate", "--fail-on-warning")
    given_to = ("--path", document, "--config", config, "--output-path", tmp_path / name, "--meta", "none")
    run(*generator, *given_to, cwd=tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    generated: Any = import_module(name)
    bodies: Any = import_module(f"{name}.models")
    for operation in OPERATIONS:
        ask = import_module(f"{name}.api.{operation.tag}.{operation.id}").sync_detailed
        if operation.id in NEED_MORE:
            continue
        api_over_http.begin()
        ids = api_over_http.arguments(replace(operation, query=None, request=None)).ids
        key = new_key(api_over_http, "live")
        more: dict[str, Any] = dict(zip(operation.path_parameters, ids, strict=True))
        more |= operation.query.example if operation.query else {}
        if operation.request is not None:
            more["body"] = getattr(bodies, operation.request.__name__).from_dict(operation.request.example)
        if operation.is_keyed:
            more["idempotency_key"] = "made-by-generated-code"
        with generated.AuthenticatedClient(api_over_http.base_url, key) as client:
            answer = ask(client=client, **more)
        assert answer.status_code in operation.responses, (operation.id, answer.content)
        assert (answer.parsed is None) == (answer.status_code == 204), operation.id
        if operation.request is m.ServerCreate:
            (server,) = api_over_http.living
            assert (server["name"], api_over_http.charges) == (m.ServerCreate.example["name"], 1)
