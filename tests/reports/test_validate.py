"""``pulumi-hosting validate``: every mistake of a program in one run, without an account."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pulumi_hosting.cli import main
from pulumi_hosting.rehearsal.warm_python import WarmPython
from tests.support.programs import PUBLIC_KEY

HEAD = """\
from decimal import Decimal
import pulumi
import pulumi_hosting as hosting
from pulumi_hosting import native
KEY = "{key}"
"""

# Each line has the mistakes that are named beside it, as parts of what is printed.
WRONG: list[tuple[str, list[str]]] = [
    (
        'web = hosting.Server("web", tarif_id=1, os="debian-12", months=2, power="runing")',
        [
            "Server('web'): unknown argument 'tarif_id'. Valid arguments: adopt_id, ",
            "Server('web'): months: must be one of 1, 3, 6, 12, and is 2. Next: correct months",
            "Server('web'): power: must be 'running' or 'stopped', and is 'runing' (did you mean running?).",
        ],
    ),
    (
        'hosting.Server("db", tariff_id=1, months=3, hours=5, password=pulumi.Output.secret("cAnary"))',
        [
            "Server('db'): missing argument 'os'. Next: give os",
            "Server('db'): password: must be 8 to 64 characters",
            "Server('db'): hours: give either months or hours, not both",
        ],
    ),
    (
        'hosting.Server("args", pulumi.ResourceOptions(protect=True))',
        ["Server('args'): args must be ServerArgs, and is ResourceOptions. Next: give keywords"],
    ),
    (
        'hosting.ServerIp("mail", server="web")',
        ["ServerIp('mail'): server must be a Server, and this is a str. Next: give server_id"],
    ),
    ('hosting.ServerIp("late")', ["ServerIp('late'): missing argument 'server', or 'server_id'"]),
    (
        'hosting.Ptr("mail", server=web, address=web.ip, domain="mail example.com")',
        ["Ptr('mail'): domain: must be a host name of at least two labels"],
    ),
    (
        'hosting.Domain("shop", name="example.com", years=11, nameservers=["ns1.example.net"])',
        [
            "Domain('shop'): years: must be 1 to 10, and is 11. Next: correct years",
            "Domain('shop'): nameservers: must have at least 2 items, not 1",
        ],
    ),
    (
        'native.WebhookSubscription("news", url="http://hooks.example.com", events=["*"])',
        ["WebhookSubscription('news'): url: must be an https:// URL, and begins with http://"],
    ),
    (
        'native.Server("two", tariff_id=1, os="debian-12", rebuild="replaced", wait_timeout=0)',
        [
            "Server('two'): rebuild: must be 'replace', 'reinstall' or 'forbid', and is 'replaced' (did",
            "Server('two'): wait_timeout: must be seconds: more than 0 and at most 86400",
        ],
    ),
    ('native.SshKey("deploy", name="a", public_key=KEY)', []),
    (
        'native.SshKey("deploy", name="b", public_key=KEY)',
        ["SshKey('deploy'): a resource of this name is declared at __main__.py:15 already. Next: give it"],
    ),
    (
        'native.Provider("second", mode="alive")',
        ["Provider('second'): mode: must be live or test, not 'alive'. Next: correct mode"],
    ),
    (
        'slow = pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create="soon"))',
        [],
    ),
    (
        'hosting.SshKey("slow", hosting.SshKeyArgs(public_key=KEY), slow)',
        ["SshKey('slow'): custom_timeouts: 'soon' is no duration. Next: write it like 90s, 10m or 1h30m"],
    ),
]

RIGHT = """\
tariffs = [tariff for tariff in hosting.get_tariffs() if tariff.in_stock]
cheapest = min(tariffs, key=lambda tariff: Decimal(tariff.price_monthly))
name = pulumi.Config().require("name")
web = hosting.Server("web", tariff_id=cheapest.id, os="debian-12", name=name)
old = hosting.Server.get("old", "20003")
pulumi.export("old", hosting.get_server("20003").status)
mail = native.ServerIp("mail", server_id=web.id)
domain = mail.address.apply(lambda ip: f"{ip}.example.com")
hosting.Ptr("mail", server=web, address=mail.address, domain=domain)
part = pulumi.ResourceOptions(parent=pulumi.ComponentResource("shop:index:Part", "part"))
hosting.Domain("shop", name="example.com", opts=part)
pulumi.export("balance", hosting.get_balance_output().balance)
"""


@pytest.fixture(autouse=True)
def _warm_programs(warm_python: WarmPython) -> Iterator[None]:
    """Programs run in warm processes, which count for coverage."""
    with warm_python.substituted():
        yield


def project(folder: Path, text: str) -> Path:
    (folder / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (folder / "__main__.py").write_text(HEAD.format(key=PUBLIC_KEY) + text)
    return folder


def validated(folder: Path, *options: str) -> Result:
    """Validate it. A key in the environment is not used: nothing listens at the address."""
    environ = {"HOSTING_API_KEY": "vk_live_cAnary", "HOSTING_BASE_URL": "http://127.0.0.1:1/v1"}
    return CliRunner().invoke(main, ["validate", str(folder), *options], env=environ)


def test_eighteen_mistakes_are_eighteen_lines(tmp_path: Path) -> None:
    answer = validated(project(tmp_path, "\n".join(line for line, _ in WRONG)))
    assert answer.exit_code == 7, answer.output
    expected = [
        f"__main__.py:{number}: {text}"
        for number, (_, texts) in enumerate(WRONG, HEAD.count("\n") + 1)
        for text in texts
    ]
    lines = answer.stdout.splitlines()
    assert len(lines) == len(expected) == 18
    for line, wanted in zip(lines, expected, strict=True):
        assert line.startswith(wanted)
    assert all("Next: " in line for line in lines)
    assert "cAnary" not in answer.output


def test_a_right_program_has_none_and_needs_no_account(tmp_path: Path) -> None:
    answer = validated(project(tmp_path, RIGHT), "--config", "name=web")
    assert (answer.exit_code, answer.stdout) == (0, "4 resources checked, no mistakes.\n"), answer.output


def test_one_resource_is_counted_as_one(tmp_path: Path) -> None:
    answer = validated(project(tmp_path, 'hosting.SshKey("a", public_key=KEY)\n'))
    assert (answer.exit_code, answer.stdout) == (0, "1 resource checked, no mistakes.\n"), answer.output


def test_a_stacks_settings_file_is_read_and_its_secrets_are_not(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text(
        "encryptionsalt: v1:x\nconfig:\n  shop:name: we b\n  shop:password: {secure: v1:abc}\n"
    )
    text = 'config = pulumi.Config()\nconfig.require_secret("password")\n'
    text += 'hosting.Server("web", tariff_id=1, os="debian-12", name=config.require("name"))\n'
    answer = validated(project(tmp_path, text), "--stack", "dev", "--json")
    assert answer.exit_code == 7, answer.output
    found: dict[str, Any] = json.loads(answer.stdout)
    (mistake,) = found["mistakes"]
    assert found["resources"] == 1
    assert (mistake["file"], mistake["line"]) == ("__main__.py", HEAD.count("\n") + 3)
    assert (mistake["resource"], mistake["name"]) == ("Server", "web")
    assert mistake["message"].startswith("name: ")


@pytest.mark.parametrize("example", ["dynamic", "native"])
def test_the_examples_have_no_mistake(example: str) -> None:
    folder = Path(__file__).parents[2] / "examples" / "python" / example
    given = {"domain": "example.com", "tariff": "1", "publicKey": PUBLIC_KEY}
    answer = validated(folder, *(part for key, value in given.items() for part in ("-c", f"{key}={value}")))
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.endswith(" resources checked, no mistakes.\n")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            'pulumi.Config().require("size")',
            "Missing required configuration variable 'shop:size'. Next: give it with ",
        ),
        ('{}["x"]', "KeyError: 'x'"),
        ('print("noise")\nraise SystemExit("stop")', "SystemExit: stop"),
    ],
)
def test_where_a_program_ends_is_told_beside_what_is_wrong_before(
    tmp_path: Path, line: str, told: str
) -> None:
    text = f'hosting.SshKey("a", public_key="x")\ndef part():\n    pass\n{line}\n'
    answer = validated(project(tmp_path, text))
    first, last = answer.stdout.splitlines()
    assert answer.exit_code == 7
    assert "SshKey('a'): public_key: " in first
    number = HEAD.count("\n") + text.count("\n")
    assert last.startswith(
        f"__main__.py:{number}: the program ends here, and what follows was not checked: {told}"
    )


def test_a_mistake_is_found_in_the_file_that_makes_it(tmp_path: Path) -> None:
    (tmp_path / "network.py").write_text(
        "import pulumi_hosting as hosting\n\n\ndef make(server):\n"
        "    hosting.Ptr('a', server=server, domain=' ')\n"
    )
    text = 'import network\nnetwork.make(hosting.Server("web", tariff="VDS-1", os="debian-12"))\n'
    answer = validated(project(tmp_path, text))
    assert answer.stdout.startswith("network.py:5: Ptr('a'): domain: ")
    assert answer.stdout.count("\n") == 1


def test_a_class_of_the_program_is_checked_as_what_it_is(tmp_path: Path) -> None:
    text = 'class Web(hosting.Server):\n    pass\n\nWeb("a", tariff_id=1, os="debian-12", months=2)\n'
    answer = validated(project(tmp_path, text))
    assert answer.stdout.startswith(
        f"__main__.py:{HEAD.count(chr(10)) + 4}: Server('a'): months: must be one of"
    )


def test_what_is_no_project_that_it_reads_is_refused(tmp_path: Path) -> None:
    assert validated(tmp_path).exit_code == 2
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: go\n")
    answer = validated(tmp_path)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "programs in Python, YAML, TypeScript and JavaScript can be checked" in answer.stderr


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("web = (", "SyntaxError: '(' was never closed. Next: correct the line"),
        (
            "import shop_network",
            "ModuleNotFoundError: No module named 'shop_network'. Next: install what is missing for the "
            "program's Python, or correct the import",
        ),
        ("import sys; sys.exit(3)", "SystemExit: 3. Next: let the program end without sys.exit"),
    ],
)
def test_a_program_that_could_not_be_run_is_one_line(tmp_path: Path, line: str, told: str) -> None:
    answer = validated(project(tmp_path, f'hosting.SshKey("a", public_key=KEY)\n{line}\n'), "--json")
    assert (answer.exit_code, answer.stdout) == (1, "")
    number = HEAD.count("\n") + 2
    assert answer.stderr == f"error: the program could not be run: __main__.py:{number}: {told}\n"


def test_a_syntax_error_of_another_file_is_told_there(tmp_path: Path) -> None:
    (tmp_path / "network.py").write_text("def make(:\n    pass\n")
    answer = validated(project(tmp_path, "import network\n"))
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr.startswith("error: the program could not be run: network.py:1: SyntaxError: ")


def test_values_of_wrong_types_do_not_end_the_check(tmp_path: Path) -> None:
    text = 'hosting.Server("a", tariff_id=1, os="debian-12", custom_fields=["x"])\n'
    text += 'native.Server("b", tariff_id=1, os={"a": 3}, ssh_key_ids={"x": 1}, custom_fields=["x"])\n'
    text += 'native.Domain("c", name="example.com", nameservers="ns1")\n'
    text += 'native.SshKey("d", public_key="x")\n'
    answer = validated(project(tmp_path, text))
    assert answer.exit_code == 7
    *found, last = [line.partition(": ")[2] for line in answer.stdout.splitlines()]
    assert found == [
        "Server('a'): custom_fields: must be a map, and is a list. Next: correct custom_fields",
        "Server('b'): os: must be a text, and is a map. Next: correct os",
        "Server('b'): ssh_key_ids: must be a list, and is a map. Next: correct ssh_key_ids",
        "Server('b'): custom_fields: must be a map, and is a list. Next: correct custom_fields",
        "Domain('c'): nameservers: must be a list, and is a text. Next: correct nameservers",
    ]
    assert last.startswith("SshKey('d'): public_key: ")


def test_a_program_that_ends_its_process_could_not_be_checked(tmp_path: Path) -> None:
    answer = validated(project(tmp_path, "import os\nos._exit(3)\n"))
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr == "error: the program could not be checked: exit code 3\n"


# Each line has the mistakes that are named beside it, as parts of what is printed.
NAMES: list[tuple[str, list[str]]] = [
    (
        "from pulumi_hosting import Servr, cli",
        ["pulumi_hosting has no 'Servr' (did you mean Server?). Next: write Server in place of Servr"],
    ),
    (
        'web = Servr("web", tarif="VDS-1", os="debian-12", months=2)',
        [
            "Server('web'): unknown argument 'tarif'. Valid arguments: adopt_id, ",
            "Server('web'): months: must be one of 1, 3, 6, 12, and is 2. Next: correct months",
        ],
    ),
    (
        'native.SshKye("deploy", public_key=KEY, nam="x")',
        [
            "pulumi_hosting.native has no 'SshKye' (did you mean SshKey?). Next: write SshKey in place of ",
            "SshKey('deploy'): unknown argument 'nam'. Valid arguments: adopt_id, name, public_key",
        ],
    ),
    (
        'pulumi.export("state", web.statuss.apply(str.upper))',
        ["Server has no 'statuss' (did you mean status?). Next: write status in place of statuss"],
    ),
    (
        'native.Provider("eu", maxCharge=5, mode="alive", base_ur="https://x.example/v1")',
        [
            "Provider('eu'): unknown argument 'base_ur'. Valid arguments: api_key, base_url, ",
            "Provider('eu'): unknown argument 'maxCharge'. Valid arguments: api_key, base_url, ",
            "Provider('eu'): mode: must be live or test, not 'alive'. Next: correct mode",
        ],
    ),
    (
        "pulumi.export('name', hosting.get_server(sever_id='5').name)",
        [
            "get_server(): unknown argument 'sever_id'. Valid arguments: include, server_id. Next: write "
            "server_id in place of sever_id"
        ],
    ),
    (
        "native.get_server(opts=None)",
        ["get_server(): missing argument 'server_id'. Next: give server_id"],
    ),
    (
        "hosting.get_server_output(web.id, 'owner', include='all')",
        ["get_server_output(): takes 1 argument without a name, and 2 are given. Next: give the others by "],
    ),
    (
        "hosting.get_server('5', server_id='6')",
        ["get_server(): server_id is given twice. Next: remove one of the two"],
    ),
    (
        "hosting.get_quote(tariff_id=1, months=2)",
        ["get_quote(): months: must be 1, 3, 6 or 12. Next: correct months"],
    ),
    ("hosting.get_tarifs()", ["pulumi_hosting has no 'get_tarifs' (did you mean get_tariffs?). Next: "]),
    (
        'hosting.Server("two", tariff="VDS-1", tariff_id=1, os="debian-12", months=4)',
        [
            "Server('two'): months: must be one of 1, 3, 6, 12, and is 4. Next: correct months",
            "Server('two'): give either tariff or tariff_id, not both. Next: remove one of the two",
        ],
    ),
]


def test_misspelled_names_are_told_and_the_check_goes_on(tmp_path: Path) -> None:
    text = "\n".join(line for line, _ in NAMES)
    answer = validated(project(tmp_path, text))
    assert answer.exit_code == 7, answer.output
    expected = [
        f"__main__.py:{number}: {part}"
        for number, (_, parts) in enumerate(NAMES, HEAD.count("\n") + 1)
        for part in parts
    ]
    lines = answer.stdout.splitlines()
    assert [line[: len(wanted)] for line, wanted in zip(lines, expected, strict=True)] == expected
    found = json.loads(validated(tmp_path, "--json").stdout)
    (first, *_) = [row for row in found["mistakes"] if row["resource"] == "get_server"]
    assert first["name"] == ""


def test_what_is_like_no_name_ends_the_check_after_the_rest(tmp_path: Path) -> None:
    text = 'hosting.SshKey("a", public_key="x")\nprint(hasattr(hosting, "_x"))\nhosting.Balloon("b")\n'
    first, last = validated(project(tmp_path, text)).stdout.splitlines()
    assert "SshKey('a'): public_key: " in first
    assert last.endswith("AttributeError: module 'pulumi_hosting' has no attribute 'Balloon'")


def test_of_two_with_one_name_each_is_told_at_its_line(tmp_path: Path) -> None:
    """The first is registered last: it waits for another one."""
    text = 'key = hosting.SshKey("key", public_key=KEY)\n'
    text += 'hosting.Server("web", tariff_id=1, os="debian-12", name=key.name, months=2, tarif=1)\n'
    text += 'hosting.Server("web", tariff_id="x", os="debian-12", name="b", months=4)\n'
    lines = validated(project(tmp_path, text)).stdout.splitlines()
    number = HEAD.count("\n") + 2
    starts = [
        f"__main__.py:{number}: Server('web'): unknown argument 'tarif'",
        f"__main__.py:{number}: Server('web'): months: must be one of 1, 3, 6, 12, and is 2",
        f"__main__.py:{number + 1}: Server('web'): tariff_id: must be a whole number",
        f"__main__.py:{number + 1}: Server('web'): months: must be one of 1, 3, 6, 12, and is 4",
        f"__main__.py:{number + 1}: Server('web'): a resource of this name is declared at "
        f"__main__.py:{number} already. Next: give it another name",
    ]
    assert len(lines) == len(starts), lines
    assert [line[: len(start)] for line, start in zip(lines, starts, strict=True)] == starts


def test_an_event_type_that_is_a_letter_off_is_a_mistake_and_an_unknown_one_is_not(tmp_path: Path) -> None:
    hook = 'native.WebhookSubscription("{}", url="https://hooks.example.com", events=["ping", "{}"])'
    events = {"typo": "server.creatd", "new": "server.installed", "own": "vpn.up", "all": "*"}
    text = "\n".join(hook.format(*item) for item in events.items())
    answer = validated(project(tmp_path, text))
    assert answer.exit_code == 7
    wrong = "events: there is no event 'server.creatd' (did you mean server.created?). Next: correct events"
    assert answer.stdout.splitlines() == [f"__main__.py:6: WebhookSubscription('typo'): {wrong}"]
