"""A subscription to events (API document, "Webhooks", "Events").

The API has no idempotency key for it and shows its secret once, so the description carries the resource's
ownership tag: a subscription whose answer was lost is found by it and gets a new secret. Of several that runs
made at the same moment the one with the lowest id stays. What the service disabled after failures in a row is
enabled again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from pulumi_hosting.api import models as m
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.api.values import check_line
from pulumi_hosting.client.exceptions import ApiError, InvalidResponse, NotFound, TransportError
from pulumi_hosting.exactly_once import ownership_tag as tags
from pulumi_hosting.exactly_once import webhook_search as search
from pulumi_hosting.exactly_once.idempotency_keys import KeyRing
from pulumi_hosting.exactly_once.local_files import taken_again, turn
from pulumi_hosting.exactly_once.ownership_check import Comparison, compare, must_be_own
from pulumi_hosting.resources import base, powers
from pulumi_hosting.resources.api_fields import At, shown
from pulumi_hosting.resources.base import ADOPTS, IdText, Trait
from pulumi_hosting.resources.drift_fields import Drift
from pulumi_hosting.resources.takeover import Takeover
from pulumi_hosting.session.errors import AmbiguousMatch, NotOurs, ResourceError, failing_with
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text, without_secrets

SIMULATED = "sandbox-"
_TAGGED = "it carries this resource's ownership tag; it gets a new secret, and the present one stops"
_LONGEST = 1000 - 26  # a space and the tag, whatever its count
_Description = Annotated[
    str, Field(max_length=_LONGEST), AfterValidator(check_line), AfterValidator(tags.untagged)
]


def _visible(url: str) -> str:
    if not url.isprintable():
        raise ValueError("must hold no invisible characters")
    return url


def _by_id(listed: Iterable[m.Subscription], id: str) -> m.Subscription | None:
    return next((found for found in listed if str(found.id) == id), None)


def _shown(url: str) -> str | None:
    """The url as it may be shown; None if there is none."""
    return without_secrets(search.plain_url(url)) if url else None


def _set(events: list[str]) -> list[str]:
    return sorted(set(events))


class WebhookSubscriptionInputs(base.Inputs):
    change = m.SubscriptionUpdate
    url: Annotated[
        m.WebhookUrl,
        AfterValidator(_visible),
        Trait(normal=search.plain_url),
        Drift(lambda value: "https://elsewhere.example.net/"),
    ] = Field(description="https:// URL of a public host that deliveries go to.")
    events: Annotated[
        m.Events, AfterValidator(_set), Trait(unordered=True), Drift(lambda value: ["ping"])
    ] = Field(description="Event types such as server.created, or *; order does not matter.")
    description: _Description | None = m.optional(
        "Free text shown in the control panel, up to 974 characters."
    )
    active: bool = Field(
        default=True,
        description="Whether it delivers; true (default) also enables it again after the service "
        "disabled it.",
    )
    rotation: Annotated[str | None, Field(max_length=255), Trait(trigger=True)] = m.optional(
        "Any text; if it differs from the last one, a new secret is made and the old one stops at once."
    )
    adopt_id: Annotated[IdText | None, ADOPTS] = m.optional(
        "Take over this existing subscription instead of creating one. Its secret stays unknown until it is "
        "rotated."
    )

    @model_validator(mode="before")
    @classmethod
    def _always_managed(cls, data: Any) -> Any:
        # A subscription that the service disabled is a difference whether or not the user thought of it.
        return {"active": True, **data} if isinstance(data, dict) else data


class WebhookSubscriptionState(base.State):
    api = m.Subscription
    id: Annotated[str, At()]
    url: Annotated[str, At()]
    events: Annotated[list[str], At()] = Field(
        default=[], description="Event types that are delivered, in alphabetical order, or * for all."
    )
    description: Annotated[str | None, At()] = m.optional(
        "Free text shown in the control panel, without the provider's tag."
    )
    active: Annotated[bool | None, At()] = None
    secret: Secret | None = m.optional("Signs the deliveries. Empty if it was never shown to the provider.")
    disabled_reason: Annotated[str | None, At()] = None
    created_at: Annotated[str | None, At()] = None
    ownership_tag: str | None = m.optional(
        "Tag behind the description on the account, as last written: tells whether a later run took it over."
    )


def from_api(
    found: m.Subscription, url: str | None = None, secret: Secret | None = None, tag: str | None = None
) -> WebhookSubscriptionState:
    values = shown(WebhookSubscriptionState, found) | {
        "id": str(found.id),
        "url": url if url and search.plain_url(url) == search.plain_url(found.url) else found.url,
        "events": sorted(found.events),
        "description": tags.split_tag(found.description)[0],
        "disabled_reason": found.disabled_reason if not found.active else None,
    }
    return WebhookSubscriptionState(**values, secret=secret, ownership_tag=tag)


class WebhookSubscriptionResource(
    base.Resource[WebhookSubscriptionInputs, WebhookSubscriptionState],
    powers.Findable[WebhookSubscriptionInputs, WebhookSubscriptionState],
    powers.Adoptable[WebhookSubscriptionInputs],
    powers.Validated,
    powers.Settled[WebhookSubscriptionInputs, WebhookSubscriptionState],
    powers.Sandboxed[WebhookSubscriptionState],
    powers.Predicted[WebhookSubscriptionState],
    powers.Repeatable[WebhookSubscriptionState],
):
    kind: ClassVar[str] = "webhook_subscription"
    title: ClassVar[str] = "webhook subscription"
    natural_key: ClassVar = ("url",)
    sandbox = "refused"
    api_name = "webhook"
    control_path = "/webhooks/{}"
    replacement = "free"
    scopes: ClassVar = dict.fromkeys(("read", "create", "update", "delete"), ("webhooks:manage",))

    def is_id(self, id: str) -> bool:
        return id.startswith(SIMULATED) or super().is_id(id)

    def read(
        self, request: Request, id: str, last: WebhookSubscriptionState | None = None
    ) -> WebhookSubscriptionState | None:
        # The document shows no read of a single one, so it is looked for in the list.
        began = request.clock.monotonic()
        listed = search.subscriptions(request)
        found = _by_id(listed, id)
        if found is None and request.name_is_identity:  # another task's list proves no absence
            listed = search.subscriptions(request, request.seconds_since(began))
            found = _by_id(listed, id)
        if found is None:
            if last is not None and last.url and (other := search.one_in_its_place(request, listed)):
                request.warn(
                    f"{self.title} {id} is gone from the account; {search.described(other)}: "
                    f"{request.client.words.apply} takes it over or names the setting that does, and before "
                    "that no destroy deletes it"
                )
            return None
        if last is None:
            return from_api(found)
        state = from_api(found, last.url, last.secret, last.ownership_tag)
        if request.name_is_identity:
            return state
        compared = self._compare(request, last, found)
        if compared.differences:
            text = f"{self.title} {id}: {compared.why}; the state stays as it was"
            raise NotOurs(id, search.tag_of(found), "object", text)
        if compared.reason == "later run":
            request.warn(
                f"webhook subscription {id}: {compared.why}, and "
                "made a new secret: the one recorded here signs nothing any more. From here it is not "
                "deleted any more, and a deletion says how to leave it to that run, or to take it back"
            )
            return state.model_copy(update={"secret": None})
        if tags.is_tag_of(search.tag_of(found), request.identity):
            search.remark_on_doubles(request, listed, found)
        elif last.url:  # else it is imported, with the tag that it has
            return state
        return state.model_copy(update={"ownership_tag": search.tag_of(found)})

    @staticmethod
    def _compare(
        request: Request, state: WebhookSubscriptionState, found: m.Subscription, *, url: bool = False
    ) -> Comparison:
        """Whether it is the recorded one. ``url``: compare that too; a refresh shows it as a difference."""
        return compare(
            request.identity,
            recorded_tag=state.ownership_tag,
            shown_tag=search.tag_of(found),
            recorded={"url": _shown(state.url) if url else None, "created_at": state.created_at},
            shown={"url": _shown(found.url), "created_at": as_text(found.created_at)},
        )

    def _must_be_own(
        self,
        request: Request,
        state: WebhookSubscriptionState,
        listed: Sequence[m.Subscription],
        intent: Literal["changed", "deleted"],
    ) -> tuple[m.Subscription | None, Comparison | None]:
        """The subscription of the state among ``listed``; None if it is gone. Raises ``NotOurs``, also if it
        is gone and another one carries this resource's tag."""
        found = _by_id(listed, state.id)
        if found is None:
            if other := search.one_in_its_place(request, listed):
                text = f"{self.title} {state.id} is gone, and {search.described(other)}; nothing was {intent}"
                raise NotOurs(str(other.id), search.tag_of(other), "elsewhere", text)
            return None, None
        compared = self._compare(request, state, found, url=True)
        must_be_own(request, compared, self.title, state.id, search.tag_of(found), intent)
        return found, compared

    @staticmethod
    def _certain_doubles(
        request: Request, state: WebhookSubscriptionState, listed: Sequence[m.Subscription]
    ) -> list[m.Subscription]:
        """Second ones of this resource among ``listed``. None if another run took this one over."""
        found = _by_id(listed, state.id)
        if found is None or not (request.name_is_identity or search.tag_of(found) == state.ownership_tag):
            return []
        return search.doubles(request, listed, found)

    def _doubles_of_name(self, request: Request, state: WebhookSubscriptionState) -> list[m.Subscription]:
        """Second ones to be deleted now, if the url is the identity: looked for in what the run knows, and
        then in a new list."""
        seen = self._certain_doubles(request, state, search.subscriptions(request))
        return self._certain_doubles(request, state, request.client.webhooks.list()) if seen else []

    @taken_again
    def create(self, request: Request, inputs: WebhookSubscriptionInputs) -> WebhookSubscriptionState:
        if request.client.is_test_key:
            return self._simulate(request, inputs)
        if inputs.adopt_id is not None:
            return self._adopted(request, inputs.adopt_id, inputs)
        with turn(request, "webhook subscriptions", "making a webhook subscription"):
            if tagged := search.find_tagged(request, inputs.url):
                return self._take_over(request, inputs, tagged)
            listed = request.client.webhooks.list()
            if request.name_is_identity and (same := search.of_url(listed, inputs.url)):
                return from_api(same[0], inputs.url)  # another run made it since this one looked
            search.remark_on_others(request, listed, inputs.url)
            tag = search.new_tag(request, listed)
            try:
                made = request.client.webhooks.create(
                    url=inputs.url, events=inputs.events, description=tags.with_tag(inputs.description, tag)
                )
            except (TransportError, ApiError, InvalidResponse) as error:
                if isinstance(error, ApiError) and error.status < 500:
                    raise
                # The answer was lost: what is on the account now decides.
                if tagged := search.find_tagged(request, inputs.url):
                    return self._take_over(request, inputs, tagged)
                raise
            if first := search.keep_first(request, inputs.url, made):
                return from_api(first, inputs.url)
            return from_api(made, inputs.url, made.secret, None if request.name_is_identity else tag)

    def _take_over(
        self, request: Request, inputs: WebhookSubscriptionInputs, tagged: list[m.Subscription]
    ) -> WebhookSubscriptionState:
        """The first of them. Its secret was lost with an answer, or is another run's: it gets a new one."""
        first, *others = tagged
        self._announced(first, inputs, _TAGGED).announce(request)
        request.taken_over.add(str(first.id))
        search.delete_doubles(
            request, [one for one in others if search.plain_url(one.url) == search.plain_url(first.url)]
        )
        tag = tags.next_tag(search.tag_of(first), request.identity)
        text = tags.split_tag(first.description)[0] if inputs.description is None else inputs.description
        after = request.client.webhooks.update(first.id, description=tags.with_tag(text, tag))
        return from_api(after, inputs.url, request.client.webhooks.rotate_secret(first.id).secret, tag)

    def _adopt(self, request: Request, id: str) -> m.Subscription:
        found = _by_id(request.client.webhooks.list(), id)
        if found is None:
            absent = f"adopt_id: there is no {self.title} {id} on this account"
            raise ResourceError(f"{absent}. Next: correct adopt_id, or leave it out")
        return found

    def _adopted(
        self, request: Request, id: str, inputs: WebhookSubscriptionInputs
    ) -> WebhookSubscriptionState:
        """With the tag that ``settle`` writes, so that no earlier state's deletion fits."""
        found = self._adopt(request, id)
        request.taken_over.add(id)
        if inputs.rotation is None:
            unknown = f"{self.title} {id} is taken over; its secret is not known here"
            request.warn(f"{unknown}. Next: set rotation to make a new one")
        tag = None if request.name_is_identity else tags.next_tag(search.tag_of(found), request.identity)
        return from_api(found, inputs.url, tag=tag)

    def _announced(self, found: m.Subscription, inputs: WebhookSubscriptionInputs, reason: str) -> Takeover:
        return Takeover(from_api(found, inputs.url), reason, found.created_at, title=self.title)

    @staticmethod
    def _simulate(request: Request, inputs: WebhookSubscriptionInputs) -> WebhookSubscriptionState:
        closed = "webhooks are closed to test keys"
        request.warn(f"{closed}: this subscription is simulated here, and nothing will be delivered")
        key = KeyRing(0, False, request.identity, "create_webhook", {"url": inputs.url}).key(0)
        number = key.rpartition("-")[2][:16]
        declared = {name: getattr(inputs, name) for name in inputs.settings()}
        secret = Secret(f"whsec_sandbox{number}")
        return WebhookSubscriptionState(id=f"{SIMULATED}{number}", secret=secret, **declared)

    def update(
        self,
        request: Request,
        state: WebhookSubscriptionState,
        inputs: WebhookSubscriptionInputs,
        fields: frozenset[str],
    ) -> WebhookSubscriptionState:
        if request.name_is_identity:
            search.delete_doubles(request, self._doubles_of_name(request, state))
        else:
            listed = request.client.webhooks.list()
            _, compared = self._must_be_own(request, state, listed, "changed")
            if compared is not None and compared.decision == "repair":
                fields |= {"description"}
            search.delete_doubles(request, self._certain_doubles(request, state, listed))
        state = self._patch(request, state, inputs, fields - {"rotation"})
        request.save(state)
        if "rotation" in fields:
            state = self._with_new_secret(request, state)
            request.info(f"webhook subscription {state.id} has a new secret; the old one has stopped")
        return state

    @staticmethod
    def _with_new_secret(request: Request, state: WebhookSubscriptionState) -> WebhookSubscriptionState:
        made = request.client.webhooks.rotate_secret(int(state.id))
        return state.model_copy(update={"secret": made.secret})

    def _patch(
        self,
        request: Request,
        state: WebhookSubscriptionState,
        inputs: WebhookSubscriptionInputs,
        fields: frozenset[str],
        tag: str | None = None,
    ) -> WebhookSubscriptionState:
        """``tag``: what to write behind the description instead of what is there or was recorded."""
        body = inputs.given(fields)
        if "description" in fields:
            kept = None if "description" in inputs.model_fields_set else state.description
            tag = tag or self._tag_to_write(request, state)
            body["description"] = tags.with_tag(inputs.description or kept, tag)
        if not body:
            return state
        after = request.client.webhooks.update(int(state.id), **body)
        is_own = not request.name_is_identity and tag is not None and tags.is_tag_of(tag, request.identity)
        return from_api(after, inputs.url, state.secret, tag if is_own else state.ownership_tag)

    @staticmethod
    def _tag_to_write(request: Request, state: WebhookSubscriptionState) -> str | None:
        """The tag that stands behind the description from now on: the own one, or that which is there if
        the url is the identity."""
        if not request.name_is_identity:
            return tags.carried_on(state.ownership_tag, request.identity, request.identity, takes=True)
        found = _by_id(search.subscriptions(request), state.id)
        return None if found is None else search.tag_of(found)

    def delete(self, request: Request, state: WebhookSubscriptionState) -> None:
        """Delete it. Raises ``NotOurs`` if it was taken over, or is not the recorded one."""
        late: list[m.Subscription] = []
        if request.name_is_identity:
            late = self._doubles_of_name(request, state)
        else:
            listed = request.client.webhooks.list()
            found, _ = self._must_be_own(request, state, listed, "deleted")
            if found is None:
                return
            if search.tag_of(found) == state.ownership_tag:
                late = [other for other in search.alike(listed, found) if other.id > found.id]
        try:
            request.client.webhooks.delete(int(state.id))
        except NotFound:
            request.gone.add(state.id)
            request.reads.forget("webhooks")
        except (TransportError, InvalidResponse) as error:
            with failing_with(error):
                left = [*request.client.webhooks.list()]
            if _by_id(left, state.id) is not None:
                raise
        search.delete_doubles(request, late)

    def find(self, request: Request, inputs: WebhookSubscriptionInputs) -> WebhookSubscriptionState | None:
        """By URL. Of one and its second ones, which its next update deletes, the first."""
        if request.client.is_test_key:
            return None
        began = request.clock.monotonic()
        same = search.of_url(search.subscriptions(request), inputs.url)
        if not same and request.fresh:
            same = search.of_url(search.subscriptions(request, request.seconds_since(began)), inputs.url)
        if len(same) - 1 > len(search.doubles(request, same, same[0]) if same else ()):
            raise AmbiguousMatch("the webhook subscription of this url", [str(found.id) for found in same])
        return from_api(same[0], inputs.url) if same else None

    def all(
        self, request: Request, *, url: str | None = None, **_: Any
    ) -> Iterable[WebhookSubscriptionState]:
        """By ``url``."""
        wanted = None if url is None else search.plain_url(url)
        listed = request.client.webhooks.list()
        return (from_api(found) for found in listed if wanted in (None, search.plain_url(found.url)))

    def takeover(self, request: Request, inputs: WebhookSubscriptionInputs) -> Takeover | None:
        if request.client.is_test_key:
            return None
        if inputs.adopt_id is not None:
            stays, gets = "its secret stays unknown here", "it gets a new secret, and the present one stops"
            reason = f"adopt_id names it; {stays if inputs.rotation is None else gets}"
            return self._announced(self._adopt(request, inputs.adopt_id), inputs, reason)
        tagged = search.find_tagged(request, inputs.url)
        if not tagged:
            return None
        others = ", ".join(str(one.id) for one in tagged[1:])
        also = f"; {others} of an interrupted run is deleted" if others else ""
        return self._announced(tagged[0], inputs, _TAGGED + also)

    def validate(self, request: Request, desired: Mapping[str, Any], fields: frozenset[str]) -> base.Reasons:
        """The event types against those the service sends."""
        if request.client.is_test_key or not fields & {"events"} or "events" not in desired:
            return {}
        offered = request.shared(("events",), request.client.webhooks.events, 300.0)
        known = {"*", *(event.type for event in offered)}
        for event in desired["events"]:
            if event not in known:
                return {"events": f"there is no event {event!r}: choose from {', '.join(sorted(known))}"}
        return {}

    def settle(
        self, request: Request, state: WebhookSubscriptionState, inputs: WebhookSubscriptionInputs
    ) -> WebhookSubscriptionState:
        """Set what differs from the inputs if it was found, or what creation could not set."""
        if self.is_simulated(state.id):
            return state
        given = inputs.given(inputs.settings())
        late = {name for name, value in given.items() if (getattr(state, name) or None) != (value or None)}
        if inputs.adopt_id is None or request.name_is_identity:
            return self._patch(request, state, inputs, frozenset(late))
        state = self._patch(request, state, inputs, frozenset(late | {"description"}), state.ownership_tag)
        if inputs.rotation is None or state.secret is not None:
            return state
        return self._with_new_secret(request, state)

    def is_simulated(self, id: str) -> bool:
        return id.startswith(SIMULATED)

    def adjust_prediction(
        self, predicted: dict[str, Any], state: WebhookSubscriptionState | None
    ) -> dict[str, Any]:
        return {**predicted, "disabled_reason": None} if predicted.get("active") else predicted

    def doubles(self, request: Request, state: WebhookSubscriptionState) -> list[str]:
        if request.client.is_test_key:
            return []
        return [
            str(double.id) for double in self._certain_doubles(request, state, search.subscriptions(request))
        ]


WEBHOOK_SUBSCRIPTION = WebhookSubscriptionResource()
