"""A stack that checks the account after each step that was not killed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pulumi_hosting.rehearsal.account_check import AccountCheck
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.engines import Run, Stack
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects


@dataclass
class CheckedStack(Stack):
    """As :class:`Stack`; after ``up``, ``refresh``, ``destroy`` and ``import`` the account must hold what the
    states below ``home`` say.

    A run that the test kills is not one of these: the check comes with the next run that is not killed.
    """

    account: AccountCheck = field(kw_only=True)

    def run(self, *arguments: str) -> Run:
        run = super().run(*arguments)
        if (
            arguments[0] in ("up", "refresh", "destroy", "import")
            and "--preview-only" not in arguments
            and self.account is not None
        ):
            problems = self.account.check(ManagedObjects.of_stack(*self.saved()), printed=run.output)
            assert problems == [], f"{' '.join(arguments)} (exit {run.exit_code}): {problems}\n{run.output}"
        return run

    def allow(self, reason: str, *ids: object) -> None:
        """Objects that no stack has to hold, and why."""
        assert reason
        self.account.allowed |= {str(id) for id in ids}

    @contextmanager
    def unchecked(self, reason: str) -> Iterator[None]:
        """No check inside, and why."""
        assert reason
        account, self.account = self.account, None  # type: ignore[assignment]  # for as long as the test says
        try:
            yield
        finally:
            self.account = account


def checked(stack: Stack, control: Control) -> CheckedStack:
    """``stack`` with the check."""
    return CheckedStack(
        stack.engine, stack.program, stack.home, stack.name, stack.environ, account=AccountCheck(control)
    )
