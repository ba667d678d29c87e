"""Writes every task's result to the file that ANSIBLE_RECORD names, one JSON line each with its diff."""

from __future__ import annotations

import json
import os
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: record
type: aggregate
short_description: results as JSON lines
description: For the tests of the collection.
"""


class CallbackModule(CallbackBase):  # type: ignore[misc]  # ansible-core ships no types
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "record"
    CALLBACK_NEEDS_ENABLED = True

    def _write(self, outcome: str, result: Any) -> None:
        task = result._task
        line = {
            "task": task.get_name(),
            "action": task.action,
            "outcome": outcome,
            "result": dict(result._result),
        }
        line |= {"host": result._host.get_name(), "check_mode": bool(task.check_mode)}
        with open(os.environ["ANSIBLE_RECORD"], "a", encoding="utf-8") as file:
            file.write(json.dumps(line, default=str) + "\n")

    def v2_runner_on_ok(self, result: Any) -> None:
        self._write("ok", result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._write("failed", result)
