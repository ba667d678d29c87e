"""What a webhook subscription can do beside the four methods: see ``powers``."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from pulumi_hosting.exactly_once.webhook_search import (
    doubles,
    find_tagged,
    of_url,
    plain_url,
    subscriptions,
)
from pulumi_hosting.resources.base import Takeover
from pulumi_hosting.resources.powers import (
    Adoptable,
    Findable,
    Predicted,
    Repeatable,
    Sandboxed,
    Settled,
    Validated,
)
from pulumi_hosting.resources.webhook_subscription import (
    _TAGGED,
    SIMULATED,
    WebhookSubscriptionBase,
    WebhookSubscriptionInputs,
    WebhookSubscriptionState,
    from_api,
)
from pulumi_hosting.session.errors import AmbiguousMatch
from pulumi_hosting.session.request import Request


class WebhookSubscriptionResource(
    WebhookSubscriptionBase,
    Findable[WebhookSubscriptionInputs, WebhookSubscriptionState],
    Adoptable[WebhookSubscriptionInputs],
    Validated,
    Settled[WebhookSubscriptionInputs, WebhookSubscriptionState],
    Sandboxed[WebhookSubscriptionState],
    Predicted[WebhookSubscriptionState],
    Repeatable[WebhookSubscriptionState],
):
    """A webhook subscription as resource: see ``webhook_subscription`` for its inputs, its state and its
    methods.
    """

    natural_key: ClassVar = ("url",)
    sandbox = "refused"

    def find(self, request: Request, inputs: WebhookSubscriptionInputs) -> WebhookSubscriptionState | None:
        """By URL. Of one and its second ones, which its next update deletes, the first."""
        if request.client.is_test_key:
            return None
        began = request.clock.monotonic()
        same = of_url(subscriptions(request), inputs.url)
        if not same and request.fresh:
            same = of_url(subscriptions(request, request.seconds_since(began)), inputs.url)
        if len(same) - 1 > len(doubles(request, same, same[0]) if same else ()):
            raise AmbiguousMatch("the url of this webhook subscription", [str(found.id) for found in same])
        return from_api(same[0], inputs.url) if same else None

    def all(
        self, request: Request, *, url: str | None = None, **_: Any
    ) -> Iterable[WebhookSubscriptionState]:
        """By ``url``."""
        wanted = None if url is None else plain_url(url)
        return (
            from_api(found)
            for found in request.client.webhooks.list()
            if wanted in (None, plain_url(found.url))
        )

    def takeover(self, request: Request, inputs: WebhookSubscriptionInputs) -> Takeover | None:
        if request.client.is_test_key:
            return None
        if inputs.adopt_id is not None:
            secret = (
                "its secret stays unknown here"
                if inputs.rotation is None
                else "it gets a new secret, and the present one stops"
            )
            return self._announced(
                self._adopt(request, inputs.adopt_id), inputs, f"adopt_id names it; {secret}"
            )
        tagged = find_tagged(request, inputs.url)
        if not tagged:
            return None
        also = (
            f"; {', '.join(str(one.id) for one in tagged[1:])} of an interrupted run is deleted"
            if tagged[1:]
            else ""
        )
        return self._announced(tagged[0], inputs, _TAGGED + also)

    def validate(
        self, request: Request, desired: Mapping[str, Any], fields: frozenset[str]
    ) -> dict[str, str]:
        """The event types against those the service sends."""
        if request.client.is_test_key or not fields & {"events"} or "events" not in desired:
            return {}
        known = {
            event.type for event in request.shared(("events",), request.client.webhooks.events, 300.0)
        } | {"*"}
        strange = [event for event in desired["events"] if event not in known]
        return (
            {"events": f"there is no event {strange[0]!r}: choose from {', '.join(sorted(known))}"}
            if strange
            else {}
        )

    def settle(
        self, request: Request, state: WebhookSubscriptionState, inputs: WebhookSubscriptionInputs
    ) -> WebhookSubscriptionState:
        """Set what differs from the inputs where it was found, or what creation could not set."""
        if self.is_simulated(state.id):
            return state
        given = inputs.given(inputs.settings())
        late = {name for name, value in given.items() if (getattr(state, name) or None) != (value or None)}
        if inputs.adopt_id is None or request.name_is_identity:
            return self._patch(request, state, inputs, frozenset(late))
        state = self._patch(request, state, inputs, frozenset(late | {"description"}), state.ownership_tag)
        if inputs.rotation is None or state.secret is not None:
            return state
        return state.model_copy(
            update={"secret": request.client.webhooks.rotate_secret(int(state.id)).secret}
        )

    def is_simulated(self, id: str) -> bool:
        return id.startswith(SIMULATED)

    def adjust_prediction(
        self, predicted: dict[str, Any], state: WebhookSubscriptionState | None
    ) -> dict[str, Any]:
        return {**predicted, "disabled_reason": None} if predicted.get("active") else predicted

    def doubles(self, request: Request, state: WebhookSubscriptionState) -> list[str]:
        if request.client.is_test_key:
            return []
        return [str(double.id) for double in self._certain_doubles(request, state, subscriptions(request))]


WEBHOOK_SUBSCRIPTION = WebhookSubscriptionResource()
