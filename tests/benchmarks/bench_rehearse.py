"""Rehearsals on the offline engine, beside importing what they stand on. Goal: one server in 6 seconds, 14
resources in 20, a year of ten objects in 60, on two quiet cores.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.benchmarks.bench_import import LIBRARIES, run
from tests.benchmarks.measure import Ratio, compare

ROUNDS = 2
ONE_SERVER = "from pulumi_hosting import Server\nServer('web', tariff_id=1, os='debian-12')\n"
EVERY_RESOURCE_TWICE = """
from base64 import b64encode
from pulumi_hosting import Domain, Ptr, Server, ServerIp, SshKey, WebhookSubscription

for number in (1, 2):
    public_key = b64encode(b"\\0\\0\\0\\x0bssh-ed25519\\0\\0\\0\\x20" + bytes([number] * 32)).decode()
    key = SshKey(f"key-{number}", public_key=f"ssh-ed25519 {public_key}")
    web = Server(f"web-{number}", tariff_id=1, os="debian-12", ssh_key_ids=[key.id], notes="a shop")
    mail = ServerIp(f"mail-{number}", server=web)
    Ptr(f"web-ptr-{number}", server=web, domain=f"www.shop-{number}.com")
    Ptr(f"mail-ptr-{number}", server=web, address=mail.address, domain=f"mail.shop-{number}.com")
    Domain(f"shop-{number}", name=f"shop-{number}.com", nameservers=["ns1.example.com", "ns2.example.com"])
    WebhookSubscription(f"news-{number}", url=f"https://shop-{number}.com/hook", events=["server.suspended"])
"""

TEN_OBJECTS = """
from pulumi_hosting import Domain, Server

for number in range(5):
    Server(f"web-{number}", tariff_id=1, os="debian-12", auto_renew=number > 0)
    Domain(f"shop-{number}", name=f"shop-{number}.com", auto_renew=number > 1)
"""
A_YEAR = ("--days", "400", "--balance", "150.00")
LOST = 7  # the exit code: the balance does not cover the year


def ratios() -> Iterator[Ratio]:
    programs: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("one server", ONE_SERVER, ()),
        ("14 resources", EVERY_RESOURCE_TWICE, ()),
        ("a year of ten objects", TEN_OBJECTS, A_YEAR),
    )
    for what, text, options in programs:
        with tempfile.TemporaryDirectory(prefix="hosting-bench-") as folder:
            program = Path(folder)
            (program / "Pulumi.yaml").write_text("name: many\nruntime: python\n", encoding="utf-8")
            (program / "__main__.py").write_text(text, encoding="utf-8")
            yield compare(
                f"rehearse {what}",
                partial(_rehearse, program, *options),
                "importing pulumi, httpx and pydantic",
                run(f"import pulumi.dynamic; {LIBRARIES}"),
                ROUNDS,
            )


def _rehearse(program: Path, *options: str) -> None:
    command = [sys.executable, "-m", "pulumi_hosting.cli", "rehearse", str(program), "--engine", "offline"]
    done = subprocess.run([*command, *options], capture_output=True)
    assert done.returncode == (LOST if options else 0), done.stderr.decode()
