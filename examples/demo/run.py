"""The whole story on one emulated account: Pulumi and Ansible bring things up, nothing changes twice, drift is found and repaired.

Nothing is charged and no account is needed: everything talks to an emulator that this script starts and ends.
"""

import atexit
import os
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

from pulumi_hosting.emulator import running
from pulumi_hosting.engines import Run, choose
from pulumi_hosting.rehearsal import Control

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def title(text: str) -> None:
    print(f"\n=== {text}", flush=True)


def shown(run: Run, expected: int = 0) -> Run:
    """Print what an engine printed; end the demo where it did not go as expected."""
    print(run.output.strip(), flush=True)
    if run.exit_code != expected:
        sys.exit(f"the demo expected exit code {expected} of `{' '.join(run.command)}` and got {run.exit_code}")
    return run


def play(environ: dict[str, str], *arguments: str) -> str:
    """Run the playbook; its recap tells what changed."""
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", str(HERE / "playbook.yml"), *arguments]
    done = subprocess.run(command, env=environ, text=True, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    print(done.stdout.strip(), flush=True)
    if done.returncode:
        sys.exit(f"the playbook failed:\n{done.stderr}")
    return done.stdout


def unchanged(recap: str) -> None:
    if "changed=0" not in recap:
        sys.exit("the demo expected the playbook to change nothing")


def money(row: dict[str, Any]) -> Decimal:
    return Decimal(str(row["amount"])).copy_abs()


def main() -> None:
    engine = choose("auto")
    print(f"engine: {engine}")
    with tempfile.TemporaryDirectory(prefix="hosting-demo-") as home, running() as emulator:
        print(f"emulator: {emulator.base_url}")
        account = {"HOSTING_API_KEY": emulator.live_key, "HOSTING_BASE_URL": emulator.base_url}
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
            "LC_ALL": "C.UTF-8",
        }

        title("Pulumi: a server with its key, a domain, an address for mail, reverse DNS, a webhook")
        shown(stack.preview())
        shown(stack.up())
        title("Ansible: the same account, one more server")
        play(environ)

        title("Again: nothing changes")
        shown(stack.up("--expect-no-changes"))
        unchanged(play(environ))

        title("Drift: somebody edits both servers, the domain, the reverse DNS and the webhook in the cabinet")
        objects = control("GET", "/objects")
        for server in objects["servers"]:
            control("PATCH", f"/servers/{server['id']}", {"notes": "edited by hand"})
        control("PATCH", f"/domains/{objects['domains'][0]['id']}", {"privacy": False})
        bought = next(address for address in objects["addresses"] if address["bought"])
        control("PATCH", f"/servers/{bought['server_id']}/ips/{bought['id']}", {"ptr": "elsewhere.example.net"})
        control("PATCH", f"/webhooks/{objects['subscriptions'][0]['id']}", {"active": False})
        shown(stack.refresh("--preview-only", "--expect-no-changes"), expected=7)
        play(environ, "--check", "--diff")

        title("Repair")
        shown(stack.up("--refresh"))
        play(environ)
        shown(stack.refresh("--preview-only", "--expect-no-changes"))

        title("Destroy all")
        play(environ, "-e", "worker=absent")
        shown(stack.destroy())

        title("What it cost")
        ledger = control.ledger()
        for row in ledger:
            print(f"{row['direction']:<6} {money(row):>6} EUR  {row['operation']} {row['object_id']}")
        sums = {way: sum((money(row) for row in ledger if row["direction"] == way), Decimal(0)) for way in ("debit", "credit")}
        print(f"charged {sums['debit']}, refunded {sums['credit']}, in {len(ledger)} movements and {control.requests()} requests")
        if left := [server for server in control("GET", "/objects")["servers"] if server["status"] not in ("cancelled", "terminated")]:
            sys.exit(f"the demo left {len(left)} servers behind")


if __name__ == "__main__":
    main()
