"""What the dynamic providers of form one answer."""

import sys
from dataclasses import dataclass
from typing import Any

from pulumi.dynamic import CheckFailure, CheckResult, ConfigureRequest, CreateResult, DiffResult, ReadResult, UpdateResult
from pulumi.dynamic.dynamic import PROVIDER_KEY

from pulumi_hosting.api.secrets import clean_text
from pulumi_hosting.provider.adapter import Adapter, Partial
from pulumi_hosting.provider.conversion import MANAGED, camel
from pulumi_hosting.provider.failures import fail, plainly
from pulumi_hosting.provider.interruption import end_waits_on_cancel
from pulumi_hosting.provider.plugin.engine_log import engine_address
from pulumi_hosting.provider.process import SESSION
from pulumi_hosting.provider.stack_settings import SETTINGS
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.session.errors import ResourceError, WaitTimeout

WAITS = "pulumi up, which waits for it; run it before destroy"
"""The way out for what is paid and in no state: a destroy alone would know nothing of it."""


@dataclass(frozen=True, slots=True)
class Served:
    """Serves the resource named by ``kind`` with what the process shares."""

    kind: str

    def configure(self, req: ConfigureRequest) -> None:
        end_waits_on_cancel()
        plainly(lambda: SESSION.configure({name: req.config.get(f"hosting:{name}") for name in SETTINGS}))
        # The SDK's process for dynamic providers is started with the engine's address too: what it charges counts with the plugins'.
        SESSION.budget.run = engine_address(sys.argv[1:]) or None

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        inputs, failures = plainly(lambda: self._adapter.check(olds, news))
        # A failure that names its property is printed with the property's value, secret or not: so the name goes into the reason.
        return CheckResult(inputs, [CheckFailure("", f"{camel(name)}: {reason}" if name else reason) for name, reason in failures.items()])

    def diff(self, id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        found = plainly(lambda: self._adapter.diff(id, olds, news))
        # What the plugin declared does not say yet who serves it: an update that changes nothing on the account records that.
        unserved = PROVIDER_KEY in news and PROVIDER_KEY not in olds
        return DiffResult(
            changes=found.changes or unserved, replaces=list(found.replaces), delete_before_replace=found.delete_before_replace
        )

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(*plainly(lambda: self._created(props)))

    def _created(self, props: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        try:
            return self._adapter.create(props)
        except WaitTimeout as error:  # what an earlier run ordered, waited for in vain
            raise ResourceError(f"{str(error).partition(' Next:')[0]} Next: {WAITS}") from None
        except Partial as partial:
            reasons = "; ".join(partial.reasons)
            if partial.refresh:  # the id is not final, and nothing here could change it later: the next run finds what was begun
                raise ResourceError(self._in_no_state(partial, reasons)) from None
            # What was made must be remembered; what is still to be set shows as a difference in the next run.
            print(f"warning: {reasons}", flush=True)
            return partial.id, partial.outputs

    def _in_no_state(self, partial: Partial, reasons: str) -> str:
        """What a person must know of an order that this form cannot record, unless it has ended: then nothing is paid for any more."""
        cause = partial.__context__
        if isinstance(cause, ResourceError) and not isinstance(cause, WaitTimeout):
            return reasons
        kind, _, number = partial.id.partition(":")
        what = f"order {number}" if kind == "order" else f"{self._adapter.resource.title} {partial.id}"
        return f"{reasons.partition(' Next:')[0].rstrip('.')}; {what} is paid and in no state. Next: {WAITS}"

    def read(self, id: str, props: dict[str, Any]) -> ReadResult:
        found = plainly(lambda: self._adapter.read(id, props))
        if found is None:
            if MANAGED not in props:  # a lookup by id: "gone" would go unnoticed
                fail(f"there is no {self._adapter.resource.title} with id {clean_text(id, 40)} on this account. Next: correct the id")
            return ReadResult("", {})
        return ReadResult(*found)

    def update(self, id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(plainly(lambda: self._adapter.update(id, olds, news)))

    def delete(self, id: str, props: dict[str, Any]) -> None:
        plainly(lambda: self._adapter.delete(id, props))

    @property
    def _adapter(self) -> Adapter:
        return Adapter(RESOURCES[self.kind], SESSION)
