"""The whole story on one emulated account: Pulumi and Ansible bring things up, nothing changes twice, drift
is found and repaired.

Nothing is charged and no account is needed: everything talks to an emulator that this script starts and ends.
After every step the account must hold what Pulumi's state and Ansible's results say, and every movement of
money must have its reason; else the demo ends.
"""

import atexit
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from pulumi_hosting.emulator import running
from pulumi_hosting.rehearsal.account_check import AccountCheck
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.engines import Run, Stack, choose
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
from pulumi_hosting.rehearsal.warm_python import forked

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def title(text: str) -> None:
    print(f"\n=== {text}", flush=True)


def shown(run: Run, expected: int = 0) -> Run:
    """Print what an engine printed; end the demo if it did not go as expected."""
    print(run.output.strip(), flush=True)
    if run.exit_code != expected:
        sys.exit(
            f"the demo expected exit code {expected} of `{' '.join(run.command)}` and got {run.exit_code}"
        )
    return run


def play(environ: dict[str, str], *arguments: str) -> str:
    """Run the playbook; its recap tells what changed."""
    command = [
        sys.executable,
        str(Path(sysconfig.get_path("scripts")) / "ansible-playbook"),
        "-i",
        "localhost,",
        str(HERE / "playbook.yml"),
        *arguments,
    ]
    done = subprocess.run(
        command, env=environ, text=True, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    print(done.stdout.strip(), flush=True)
    if done.returncode:
        sys.exit(f"the playbook failed:\n{done.stderr}")
    return done.stdout


def results(record: Path) -> list[dict[str, Any]]:
    """What the tasks of the last play reported of the account. A play in check mode reports nothing that
    is there.
    """
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    record.unlink()
    ours = [line for line in lines if line["action"].startswith("hosting.cloud.") and not line["check_mode"]]
    return [{**line["result"], "action": line["action"]} for line in ours]


@dataclass
class Books:
    """The account, and all that the tools have said of it so far."""

    account: AccountCheck
    stack: Stack
    record: Path
    reported: list[dict[str, Any]] = field(default_factory=list)

    def check(self, printed: str) -> None:
        """End the demo if the account is not what the tools say. ``printed``: by the step that just
        ended.
        """
        if self.record.exists():
            self.reported += results(self.record)
        claims = ManagedObjects.of_stack(*self.stack.saved()) + ManagedObjects.of_results(self.reported)
        self.stop_if(self.account.check(claims, printed=printed))
        # The demo does in seconds what takes a day: no limit per minute is to be met by haste.
        self.account.control("POST", "/clock", {"advance": 60})

    def stop_if(self, problems: list[str]) -> None:
        if problems:
            sys.exit("\n".join(["the account is not what Pulumi and Ansible say:", *problems]))


def unchanged(recap: str) -> None:
    if "changed=0" not in recap:
        sys.exit("the demo expected the playbook to change nothing")


def money(row: dict[str, Any]) -> Decimal:
    return Decimal(str(row["amount"])).copy_abs()


def main() -> None:
    engine = choose("auto")
    print(f"engine: {engine}")
    with (
        # An engine, a program, a provider or a playbook for each step: most of their time would be imports.
        forked(),
        tempfile.TemporaryDirectory(prefix="hosting-demo-") as home,
        running() as emulator,
    ):
        print(f"emulator: {emulator.base_url}")
        account = {"HOSTING_API_KEY": emulator.live_key, "HOSTING_BASE_URL": emulator.base_url}
        account |= dict.fromkeys(("HOSTING_API_KEY_FILE", "HOSTING_API_KEY_COMMAND"), "")
        control = Control(emulator.control_url)
        stack = engine.stack(HERE / "program", Path(home), account, name="demo")
        atexit.register(stack.remove)
        environ = {
            **os.environ,
            **account,
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT),
            "ANSIBLE_HOME": str(Path(home) / "ansible"),
            "ANSIBLE_REMOTE_TMP": str(Path(home) / "ansible" / "tmp"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "tests" / "ansible" / "callback"),
            "ANSIBLE_CALLBACKS_ENABLED": "record",
            "ANSIBLE_RECORD": str(Path(home) / "results.jsonl"),
            "LC_ALL": "C.UTF-8",
        }

        books = Books(AccountCheck(control), stack, Path(home) / "results.jsonl")

        title("Pulumi: a server with its key, a domain, an address for mail, reverse DNS, a webhook")
        shown(stack.preview())
        books.check(shown(stack.up()).output)
        title("Ansible: the same account, one more server")
        books.check(play(environ))

        title("Again: nothing changes")
        books.check(shown(stack.up("--expect-no-changes")).output)
        again = play(environ)
        unchanged(again)
        books.check(again)

        title(
            "Drift: both servers, the domain, the reverse DNS and the webhook are edited in the control panel"
        )
        objects = control("GET", "/objects")
        for server in objects["servers"]:
            control("PATCH", f"/servers/{server['id']}", {"notes": "edited by hand"})
        control("PATCH", f"/domains/{objects['domains'][0]['id']}", {"privacy": False})
        bought = next(address for address in objects["addresses"] if address["bought"])
        control(
            "PATCH", f"/servers/{bought['server_id']}/ips/{bought['id']}", {"ptr": "elsewhere.example.net"}
        )
        control("PATCH", f"/webhooks/{objects['subscriptions'][0]['id']}", {"active": False})
        found = stack.refresh("--preview-only", "--expect-no-changes")
        print("(The error below is expected here: drift was found, so the exit code is 7.)")
        shown(found, expected=7)
        books.check(play(environ, "--check", "--diff"))

        title("Repair")
        books.check(shown(stack.up("--refresh")).output)
        books.check(play(environ))
        shown(stack.refresh("--preview-only", "--expect-no-changes"))

        title("Destroy all")
        books.check(play(environ, "-e", "worker=absent"))
        # The key that both use goes with the stack that added it, so from here on nothing is claimed by
        # anybody.
        books.stop_if(books.account.empty(printed=shown(stack.destroy()).output))

        title("What it cost")
        ledger = control.ledger()
        for row in ledger:
            print(f"{row['direction']:<6} {money(row):>6} EUR  {row['operation']} {row['object_id']}")
        sums = {
            way: sum((money(row) for row in ledger if row["direction"] == way), Decimal(0))
            for way in ("debit", "credit")
        }
        print(
            f"charged {sums['debit']}, refunded {sums['credit']}, in {len(ledger)} movements and "
            f"{control.requests()} requests"
        )


if __name__ == "__main__":
    main()
