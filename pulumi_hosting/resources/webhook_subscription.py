"""A subscription to events (API document, "Webhooks", "Events").

The API has no idempotency key for it and shows its secret once, so the description carries the declaration's mark: a subscription whose
answer was lost is found by it and gets a new secret. What the service disabled after failures in a row is enabled again.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit, urlunsplit

from pydantic import AfterValidator, Field, model_validator

from pulumi_hosting.api import models as m
from pulumi_hosting.api.errors import ApiError, NotFound, TransportError
from pulumi_hosting.api.redact import Secret
from pulumi_hosting.resources import base
from pulumi_hosting.resources.base import WHEN_CREATING, Ambiguous, Context, IdText, NounError, Takeover, Trait, as_text
from pulumi_hosting.resources.keys import KeyRing, mark
from pulumi_hosting.resources.marks import split_mark, with_mark

SIMULATED = "sandbox-"
_MARK_LENGTH = 26  # a space and the tag, whatever its count


def _plain_url(url: str) -> str:
    """One spelling per address: host in lower case, no default port, no empty path."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    port = f":{parts.port}" if parts.port not in (None, 443) else ""
    return urlunsplit((parts.scheme.lower(), host + port, parts.path or "/", parts.query, ""))


def _checked_url(url: str) -> str:
    try:
        _plain_url(url)
    except ValueError:
        raise ValueError("must be an https:// URL with a port of 1 to 65535, if any") from None
    return url


def _set(events: list[str]) -> list[str]:
    return sorted(set(events))


def _trimmed(text: str) -> str:
    if split_mark(text)[1]:
        raise ValueError("must not end in [iac…]: that tag is kept by the provider")
    return text.rstrip()


class WebhookSubscriptionInputs(base.Inputs):
    url: Annotated[
        m.WebhookUrl,
        AfterValidator(_checked_url),
        Field(description="https:// URL of a public host that deliveries go to."),
        Trait(normal=_plain_url),
    ]
    events: Annotated[
        m.Events,
        AfterValidator(_set),
        Field(description="Event types such as server.created, or *; order does not matter."),
        Trait(unordered=True),
    ]
    description: Annotated[
        Annotated[str, Field(max_length=1000 - _MARK_LENGTH), AfterValidator(_trimmed)] | None,
        Field(description="Free text shown in the cabinet, up to 974 characters."),
    ] = None
    active: Annotated[
        bool,
        Field(description="Whether it delivers; true (default) also enables it again when the service has disabled it."),
    ] = True
    rotation: Annotated[
        str | None,
        Field(max_length=255, description="Any text; when it is another than before, a new secret is made and the old one stops at once."),
        Trait(trigger=True),
    ] = None
    adopt_id: Annotated[
        IdText | None,
        Field(description="Take over this existing subscription instead of making one. Its secret stays unknown until rotation."),
        WHEN_CREATING,
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _always_managed(cls, data: Any) -> Any:
        # A subscription that the service disabled is a difference whether or not the user thought of it.
        return {"active": True, **data} if isinstance(data, dict) else data


class WebhookSubscriptionState(base.State):
    url: str = Field(description="Where deliveries go.")
    events: list[str] = Field(default=[], description="Event types, or *.")
    description: str | None = Field(default=None, description="Free text shown in the cabinet, without the provider's mark.")
    active: bool | None = Field(default=None, description="Whether it delivers.")
    secret: Secret | None = Field(default=None, description="Signs the deliveries. Empty where it was never shown to the provider.")
    disabled_reason: str | None = Field(default=None, description="Why the service has disabled it.")
    created_at: str | None = Field(default=None, description="When it was made (RFC 3339, UTC).")


def _from_api(found: m.Subscription, url: str | None = None, secret: Secret | None = None) -> WebhookSubscriptionState:
    return WebhookSubscriptionState(
        id=str(found.id),
        url=url if url and _plain_url(url) == _plain_url(found.url) else found.url,
        events=sorted(found.events),
        description=split_mark(found.description)[0],
        active=found.active,
        secret=secret,
        disabled_reason=found.disabled_reason if not found.active else None,
        created_at=as_text(found.created_at),
    )


class WebhookSubscriptionNoun(base.Noun[WebhookSubscriptionInputs, WebhookSubscriptionState]):
    kind: ClassVar[str] = "webhook_subscription"
    title: ClassVar[str] = "webhook subscription"
    Inputs = WebhookSubscriptionInputs
    State = WebhookSubscriptionState
    natural_key: ClassVar = ("url",)
    delete_before_replace = True
    replacement_is_free = True
    simulated_here = True
    scopes: ClassVar = dict.fromkeys(("read", "create", "update", "delete"), ("webhooks:manage",))

    # --- looking

    def find(self, context: Context, inputs: WebhookSubscriptionInputs) -> WebhookSubscriptionState | None:
        """By URL."""
        if context.client.is_test_key:
            return None
        wanted = _plain_url(inputs.url)
        same = [found for found in context.client.webhooks.list() if _plain_url(found.url) == wanted]
        if len(same) > 1:
            raise Ambiguous("the url of this webhook subscription", [str(found.id) for found in same])
        return _from_api(same[0], inputs.url) if same else None

    def read(self, context: Context, id: str, last: WebhookSubscriptionState | None = None) -> WebhookSubscriptionState | None:
        # The document shows no read of a single one, so it is looked for in the list.
        listed = context.shared(("webhooks",), context.client.webhooks.list)
        found = next((found for found in listed if str(found.id) == id), None)
        return _from_api(found, last.url if last else None, last.secret if last else None) if found else None

    def all(self, context: Context, *, url: str | None = None, **_: Any) -> Iterable[WebhookSubscriptionState]:
        """By ``url``."""
        wanted = None if url is None else _plain_url(url)
        return (_from_api(found) for found in context.client.webhooks.list() if wanted in (None, _plain_url(found.url)))

    def is_simulated(self, id: str) -> bool:
        return id.startswith(SIMULATED)

    def validate(self, context: Context, wish: Mapping[str, Any], fields: frozenset[str]) -> dict[str, str]:
        """The event types against those the service sends."""
        if context.client.is_test_key or not fields & {"events"} or "events" not in wish:
            return {}
        known = {event.type for event in context.shared(("events",), context.client.webhooks.events, 300.0)} | {"*"}
        strange = [event for event in wish["events"] if event not in known]
        return {"events": f"there is no event {strange[0]!r}: choose from {', '.join(sorted(known))}"} if strange else {}

    # --- making

    def create(self, context: Context, inputs: WebhookSubscriptionInputs) -> WebhookSubscriptionState:
        if context.client.is_test_key:
            return self._simulate(context, inputs)
        if inputs.adopt_id is not None:
            return self._adopt(context, inputs.adopt_id, inputs)
        with context.claims.alone("webhook subscriptions"):
            if lost := self._marked(context, inputs):
                return lost
            self._remark_on_others(context, inputs)
            own = mark(context.identity)
            text = inputs.description or ""
            body: dict[str, Any] = {"url": inputs.url, "events": inputs.events}
            if text or not context.name_is_identity:
                body["description"] = text if context.name_is_identity else with_mark(text, own)
            try:
                made = context.client.webhooks.create(**body)
            except (TransportError, ApiError) as error:
                if isinstance(error, ApiError) and error.status < 500:
                    raise
                # The answer was lost: what is on the account now decides.
                if lost := self._marked(context, inputs):
                    return lost
                raise
            finally:
                context.reads.forget("webhooks")
            return _from_api(made, inputs.url, made.secret)

    def _marked(self, context: Context, inputs: WebhookSubscriptionInputs) -> WebhookSubscriptionState | None:
        """What an interrupted run of this declaration made; its secret was lost with the answer, so it gets a new one."""
        if context.name_is_identity:
            return None
        own = mark(context.identity)
        ours = [
            found
            for found in context.client.webhooks.list()
            if split_mark(found.description)[1] == own and str(found.id) not in context.owned
        ]
        if len(ours) > 1:
            raise Ambiguous(f"the mark {own} of this declaration", [str(found.id) for found in ours])
        if not ours:
            return None
        context.tell(f"webhook subscription {ours[0].id} carries this declaration's mark: an earlier run made it; it gets a new secret")
        return _from_api(ours[0], inputs.url, context.client.webhooks.rotate_secret(ours[0].id).secret)

    @staticmethod
    def _remark_on_others(context: Context, inputs: WebhookSubscriptionInputs) -> None:
        wanted = _plain_url(inputs.url)
        for found in context.client.webhooks.list():
            if _plain_url(found.url) == wanted and split_mark(found.description)[1] is None:
                context.warn(
                    f"subscription {found.id} delivers to its url already; every event that both want comes twice. "
                    f"Next: set adopt_id to {found.id} to take it over, or delete it"
                )

    def _adopt(self, context: Context, id: str, inputs: WebhookSubscriptionInputs) -> WebhookSubscriptionState:
        state = self.read(context, id)
        if state is None:
            raise NounError(f"adopt_id: there is no webhook subscription {id} on this account. Next: correct adopt_id, or leave it out")
        context.warn(f"webhook subscription {id} is taken over; its secret is not known here. Next: set rotation to have a new one made")
        return state.model_copy(update={"url": inputs.url if _plain_url(inputs.url) == _plain_url(state.url) else state.url})

    def takeover(self, context: Context, inputs: WebhookSubscriptionInputs) -> Takeover | None:
        if inputs.adopt_id is None:
            return None
        return Takeover(self._adopt(context, inputs.adopt_id, inputs), "adopt_id names it", title=self.title)

    @staticmethod
    def _simulate(context: Context, inputs: WebhookSubscriptionInputs) -> WebhookSubscriptionState:
        context.warn("webhooks are closed to test keys: this subscription is simulated here, and nothing will be delivered")
        number = KeyRing(0, False, context.identity, "create_webhook", {"url": inputs.url}).key(0).rpartition("-")[2][:16]
        return WebhookSubscriptionState(
            id=f"{SIMULATED}{number}",
            url=inputs.url,
            events=inputs.events,
            description=inputs.description,
            active=inputs.active,
            secret=Secret(f"whsec_sandbox{number}"),
        )

    def settle(self, context: Context, state: WebhookSubscriptionState, inputs: WebhookSubscriptionInputs) -> WebhookSubscriptionState:
        """Bring what was found, or could not be said when it was made, to what is declared."""
        if self.is_simulated(state.id):
            return state
        wishes = {
            name
            for name, wish in inputs.given().items()
            if name in ("url", "events", "description", "active") and (getattr(state, name) or None) != (wish or None)
        }
        rewrite = inputs.adopt_id is not None and not context.name_is_identity  # its mark becomes ours
        return self._patch(context, state, inputs, frozenset(wishes | ({"description"} if rewrite else set())))

    # --- changing

    def update(
        self, context: Context, state: WebhookSubscriptionState, inputs: WebhookSubscriptionInputs, fields: frozenset[str]
    ) -> WebhookSubscriptionState:
        state = self._patch(context, state, inputs, fields - {"rotation"})
        context.save(state)
        if "rotation" in fields:
            state = state.model_copy(update={"secret": context.client.webhooks.rotate_secret(int(state.id)).secret})
            context.tell(f"webhook subscription {state.id} has a new secret; the old one has stopped")
        return state

    @staticmethod
    def _patch(
        context: Context, state: WebhookSubscriptionState, inputs: WebhookSubscriptionInputs, fields: frozenset[str]
    ) -> WebhookSubscriptionState:
        body = {name: value for name, value in inputs.given().items() if name in fields}
        if "description" in fields:
            text = inputs.description or (state.description if "description" not in inputs.model_fields_set else None) or ""
            own: str | None = mark(context.identity)
            if context.name_is_identity:  # whose mark stands behind it stays so
                listed = context.shared(("webhooks",), context.client.webhooks.list)
                own = next((split_mark(found.description)[1] for found in listed if str(found.id) == state.id), None)
            body["description"] = with_mark(text, own) if own else text
        if not body:
            return state
        try:
            return _from_api(context.client.webhooks.update(int(state.id), **body), inputs.url, state.secret)
        finally:
            context.reads.forget("webhooks")

    def predict(self, inputs: WebhookSubscriptionInputs, state: WebhookSubscriptionState | None) -> dict[str, Any]:
        known = super().predict(inputs, state)
        return {**known, "disabled_reason": None} if known.get("active") else known

    # --- removing

    def delete(self, context: Context, state: WebhookSubscriptionState) -> None:
        try:
            context.client.webhooks.delete(int(state.id))
        except NotFound:
            return
        except TransportError:
            if any(str(found.id) == state.id for found in context.client.webhooks.list()):
                raise
        finally:
            context.reads.forget("webhooks")


WEBHOOK_SUBSCRIPTION = WebhookSubscriptionNoun()
