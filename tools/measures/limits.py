"""What the measures may be at most, and what they were at commit 52b2c88.

To raise one is a decision: the commit says why. When a number falls, its limit falls with it.
"""

from typing import NamedTuple


class Limit(NamedTuple):
    """``then``: at 52b2c88; ``most``: allowed now; ``goal``: where it is to fall."""

    then: int
    most: int
    goal: int


class Budget(NamedTuple):
    """Lines of code of a folder: ``then`` at 52b2c88, at ``most`` now, and why it takes so many."""

    then: int
    most: int
    why: str


BASELINE = "52b2c88"

WALKS = {"Pulumi": (15, 5), "Ansible": (12, 4)}
"""Hops and changes of ``tariff_id``."""

LIMITS = {
    "functions that a refreshed server passes, from the answer to the state": Limit(42, 25, 25),
    "its returns to a folder that it has left": Limit(21, 8, 8),
    "functions that read `max_charge`": Limit(16, 6, 6),
    "folders of these functions": Limit(4, 1, 1),
    "uses of `Any`": Limit(1616, 605, 900),
    "imports inside functions": Limit(208, 111, 120),
    "class names that several modules define": Limit(50, 0, 0),
    "functions without a docstring, in per cent": Limit(50, 45, 50),
    "length of a function that 95 % do not exceed, in lines": Limit(28, 25, 28),
}

BUDGETS = {
    "pulumi_hosting": Budget(63, 70, "what the package exports, and how it was installed"),
    "pulumi_hosting/actions": Budget(
        1509, 1465, "a file per action: its price, its key, and the proof that nothing is paid twice"
    ),
    "pulumi_hosting/api": Budget(
        3714,
        3000,
        "a row for each operation and a model for each body, every field described and bounded",
    ),
    "pulumi_hosting/certify": Budget(
        0, 2630, "a check for each sentence of the API document, with an HTTP client and shapes of its own"
    ),
    "pulumi_hosting/cli": Budget(1349, 1475, "options and exit codes of each command"),
    "pulumi_hosting/client": Budget(
        2891,
        3910,
        "requests, retries, damaged answers, one queue per key for all processes of one or many machines; "
        "the form for asyncio is generated, but for its limiter and transport",
    ),
    "pulumi_hosting/emulator": Budget(
        5837,
        5295,
        "the whole service: store, clock, handlers, control interface, both dialects, accounts from files",
    ),
    "pulumi_hosting/exactly_once": Budget(
        1718, 2390, "a purchase of each good, found again after a kill at any request"
    ),
    "pulumi_hosting/offline": Budget(
        5133, 4210, "Pulumi's engine; only what a recording of its CLI shows to be wrong is added"
    ),
    "pulumi_hosting/planning": Budget(
        925, 1433, "check, diff, plan, apply, budget and what ends when, once for every frontend"
    ),
    "pulumi_hosting/provider": Budget(
        2901,
        3320,
        "dynamic resources and native provider over one adapter, with state, replacements, preview",
    ),
    "pulumi_hosting/rehearsal": Budget(
        1328, 1500, "rehearsals, a year of them, both engines, and the check of an account"
    ),
    "pulumi_hosting/reports": Budget(
        2348, 3055, "a file for each question that a command answers, metrics and account files among them"
    ),
    "pulumi_hosting/resources": Budget(
        3466, 3490, "a file per resource: inputs, state, mapping, and its powers"
    ),
    "pulumi_hosting/schema": Budget(265, 260, "one reflection of models and operations for every generator"),
    "pulumi_hosting/session": Budget(792, 875, "what a run shares: reads, ownership, clock, paid time"),
    "pulumi_hosting/testing": Budget(
        0, 195, "the pytest plugin: an emulator, client, account and clock for each test"
    ),
    "pulumi_hosting/webhooks": Budget(
        825, 1005, "verification, typed events, a receiver that neither loses nor repeats one, and a relay"
    ),
    "ansible_collections": Budget(
        3357, 3350, "modules and action plugins over the planner, inventory, callback, event source"
    ),
}
