"""A subscription to events (API document, "Webhooks", "Events").

The API has no idempotency key for it and shows its secret once, so the description carries the resource's
ownership tag: a subscription whose answer was lost is found by it and gets a new secret. Of several that runs
made at the same moment the one with the lowest id stays. What the service disabled after failures in a row is
enabled again.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit, urlunsplit

from pydantic import AfterValidator, Field, model_validator

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import KEY_MEMORY_SECONDS
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.api.values import check_line
from pulumi_hosting.client.exceptions import ApiError, HostingError, InvalidResponse, NotFound, TransportError
from pulumi_hosting.exactly_once.idempotency_keys import KeyRing
from pulumi_hosting.exactly_once.ownership_tag import (
    is_tag_of,
    next_tag,
    ownership_tag,
    split_tag,
    takeovers,
    was_taken_over,
    with_tag,
)
from pulumi_hosting.resources import base
from pulumi_hosting.resources.base import WHEN_CREATING, IdText, Takeover, Trait
from pulumi_hosting.resources.drift_fields import Drift, edited, inverted
from pulumi_hosting.session.errors import ResourceConflict, ResourceError, TakenOver
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import age, as_text

SIMULATED = "sandbox-"
TAKEOVER_AGE = timedelta(seconds=KEY_MEMORY_SECONDS)
_TAGGED = "it carries this resource's ownership tag; it gets a new secret, and the present one stops"
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
    if not url.isprintable():
        raise ValueError("must hold no invisible characters")
    return url


def _set(events: list[str]) -> list[str]:
    return sorted(set(events))


def _trimmed(text: str) -> str:
    check_line(text)
    if split_tag(text)[1]:
        raise ValueError("must not end in [iac…]: that tag is kept by the provider")
    return text.rstrip()


class WebhookSubscriptionInputs(base.Inputs):
    url: Annotated[
        m.WebhookUrl,
        AfterValidator(_checked_url),
        Field(description="https:// URL of a public host that deliveries go to."),
        Trait(normal=_plain_url),
        Drift(lambda value: "https://elsewhere.example.net/"),
    ]
    events: Annotated[
        m.Events,
        AfterValidator(_set),
        Field(description="Event types such as server.created, or *; order does not matter."),
        Trait(unordered=True),
        Drift(lambda value: ["ping"]),
    ]
    description: Annotated[
        Annotated[str, Field(max_length=1000 - _MARK_LENGTH), AfterValidator(_trimmed)] | None,
        Field(description="Free text shown in the control panel, up to 974 characters."),
        Drift(edited),
    ] = None
    active: Annotated[
        bool,
        Field(
            description="Whether it delivers; true (default) also enables it again when the service has "
            "disabled it."
        ),
        Drift(inverted),
    ] = True
    rotation: Annotated[
        str | None,
        Field(
            max_length=255,
            description="Any text; when it is another than before, a new secret is made "
            "and the old one stops at once.",
        ),
        Trait(trigger=True),
    ] = None
    adopt_id: Annotated[
        IdText | None,
        Field(
            description="Take over this existing subscription instead of making one. Its secret stays "
            "unknown until rotation."
        ),
        WHEN_CREATING,
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _always_managed(cls, data: Any) -> Any:
        # A subscription that the service disabled is a difference whether or not the user thought of it.
        return {"active": True, **data} if isinstance(data, dict) else data


class WebhookSubscriptionState(base.State):
    id: str = Field(description="Number by which the subscription is changed, tested and deleted.")
    url: str = Field(description="The https:// address that events are delivered to.")
    events: list[str] = Field(
        default=[], description="Event types that are delivered, in alphabetical order, or * for all."
    )
    description: str | None = Field(
        default=None, description="Free text shown in the control panel, without the provider's tag."
    )
    active: bool | None = Field(
        default=None,
        description="Whether it delivers. The service sets it to false after 20 failures in a row.",
    )
    secret: Secret | None = Field(
        default=None, description="Signs the deliveries. Empty where it was never shown to the provider."
    )
    disabled_reason: str | None = Field(
        default=None, description="Why the service stopped delivering. Absent while it delivers."
    )
    created_at: str | None = Field(
        default=None, description="When the subscription was made (RFC 3339, UTC)."
    )
    ownership_tag: str | None = Field(
        default=None,
        description="Tag behind the description on the account, as last written: tells whether "
        "a later run took it over.",
    )


def _from_api(
    found: m.Subscription, url: str | None = None, secret: Secret | None = None, tag: str | None = None
) -> WebhookSubscriptionState:
    return WebhookSubscriptionState(
        id=str(found.id),
        url=url if url and _plain_url(url) == _plain_url(found.url) else found.url,
        events=sorted(found.events),
        description=split_tag(found.description)[0],
        active=found.active,
        secret=secret,
        disabled_reason=found.disabled_reason if not found.active else None,
        created_at=as_text(found.created_at),
        ownership_tag=tag,
    )


def _tag(found: m.Subscription) -> str | None:
    return split_tag(found.description)[1]


class WebhookSubscriptionBase(base.Resource[WebhookSubscriptionInputs, WebhookSubscriptionState]):
    """The four methods of a webhook subscription."""

    kind: ClassVar[str] = "webhook_subscription"
    title: ClassVar[str] = "webhook subscription"
    Inputs = WebhookSubscriptionInputs
    State = WebhookSubscriptionState
    control_path = "/webhooks/{}"
    replacement = "free"
    scopes: ClassVar = dict.fromkeys(("read", "create", "update", "delete"), ("webhooks:manage",))

    # --- looking

    def read(
        self, request: Request, id: str, last: WebhookSubscriptionState | None = None
    ) -> WebhookSubscriptionState | None:
        # The document shows no read of a single one, so it is looked for in the list.
        listed = list(request.shared(("webhooks",), request.client.webhooks.list))
        found = next((found for found in listed if str(found.id) == id), None)
        if found is None:
            return None
        recorded = last.ownership_tag if last else None
        state = _from_api(found, last.url if last else None, last.secret if last else None, recorded)
        if request.name_is_identity or not is_tag_of(_tag(found), request.identity):
            return state
        if was_taken_over(recorded, _tag(found)) == "by a later run":
            request.warn(
                f"webhook subscription {id}: a later run took it over, from another backend perhaps, and "
                f"made a new secret: the one "
                "recorded here signs nothing any more. From here it is not deleted any more, and a deletion "
                "says how to leave it to "
                "that run, or to take it back"
            )
            return state.model_copy(update={"secret": None})
        for double in self._doubles(listed, found):
            request.warn(
                f"webhook subscription {double.id} is a second one of this resource: a request of an "
                f"interrupted run was processed late. "
                "It is deleted when this resource is changed or destroyed next"
            )
        return state.model_copy(update={"ownership_tag": _tag(found)})

    @staticmethod
    def _doubles(listed: Iterable[m.Subscription], found: m.Subscription) -> list[m.Subscription]:
        """What requests of interrupted runs made after ``found``: the same tag to its count, the same
        address, and a higher id.
        """
        return [
            other
            for other in listed
            if other.id > found.id
            and _tag(other) is not None
            and _tag(other) == _tag(found)
            and _plain_url(other.url) == _plain_url(found.url)
        ]

    @staticmethod
    def _delete_doubles(request: Request, doubles: Iterable[m.Subscription]) -> None:
        for double in doubles:
            try:
                request.client.webhooks.delete(double.id)
            except NotFound:
                continue
            except HostingError as error:
                request.warn(
                    f"webhook subscription {double.id} is a second one of this resource and could "
                    f"not be deleted: {error}"
                )
            else:
                request.info(
                    f"webhook subscription {double.id} was a second one of this resource; it is deleted"
                )

    # --- making

    def create(self, request: Request, inputs: WebhookSubscriptionInputs) -> WebhookSubscriptionState:
        if request.client.is_test_key:
            return self._simulate(request, inputs)
        if inputs.adopt_id is not None:
            return self._adopted(request, inputs.adopt_id, inputs)
        with request.ownership.lock("webhook subscriptions"):
            if tagged := self._tagged(request, inputs):
                return self._take_over(request, inputs, tagged)
            self._remark_on_others(request, inputs)
            tag = None if request.name_is_identity else self._new_tag(request)
            body: dict[str, Any] = {"url": inputs.url, "events": inputs.events}
            if description := with_tag(inputs.description, tag):
                body["description"] = description
            try:
                made = request.client.webhooks.create(**body)
            except (TransportError, ApiError, InvalidResponse) as error:
                if isinstance(error, ApiError) and error.status < 500:
                    raise
                # The answer was lost: what is on the account now decides.
                if tagged := self._tagged(request, inputs):
                    return self._take_over(request, inputs, tagged)
                raise
            finally:
                request.reads.forget("webhooks")
            return self._kept(request, inputs, made, tag)

    @staticmethod
    def _new_tag(request: Request) -> str:
        """Another one than that of an object which is about to be replaced."""
        old = [
            tag
            for found in request.client.webhooks.list()
            if is_tag_of(tag := _tag(found), request.identity) and tag
        ]
        return next_tag(max(old, key=takeovers), request.identity) if old else ownership_tag(request.identity)

    def _tagged(self, request: Request, inputs: WebhookSubscriptionInputs) -> list[m.Subscription]:
        """What runs of this resource made and no state in this run has, the lowest id first.

        Raises ``ResourceConflict`` where it must not be taken over automatically: it delivers elsewhere by
        now, it is older than idempotency keys live, or ``strict`` is set without a scope.
        """
        if request.name_is_identity:
            return []
        known = request.owned | request.ownership.of_others(request.identity)
        found = [
            one
            for one in request.client.webhooks.list()
            if is_tag_of(_tag(one), request.identity) and str(one.id) not in known
        ]
        if not found:
            return []
        found.sort(key=lambda one: one.id)
        first = found[0]
        since = request.service_now() - first.created_at if first.created_at else None
        if _plain_url(first.url) != _plain_url(inputs.url):
            why = f"it delivers to {first.url}, not to {inputs.url}"
        elif since is None or since > TAKEOVER_AGE:
            why = "it is older than seven days, and another state may have it"
        elif request.strict and request.scope is None:
            why = "strict is set and hosting:scope is not, and it may be another backend's"
        else:
            return found
        when = f", made {age(since)} ago" if since is not None else ""
        raise ResourceConflict(
            f"webhook subscription {first.id}{when} carries this resource's ownership tag: {why}; nothing "
            f"was changed. Next: set "
            f"adopt_id={first.id} to take it over, or give this resource another name",
            id=str(first.id),
        )

    def _take_over(
        self, request: Request, inputs: WebhookSubscriptionInputs, tagged: list[m.Subscription]
    ) -> WebhookSubscriptionState:
        """The first of them. Its secret was lost with an answer, or is another run's: it gets a new one."""
        first, *doubles = tagged
        request.info(self._announced(first, inputs, _TAGGED).announcement(request.service_now()))
        request.taken_over.add(str(first.id))
        self._delete_doubles(
            request, [one for one in doubles if _plain_url(one.url) == _plain_url(first.url)]
        )
        tag = next_tag(_tag(first), request.identity)
        text = split_tag(first.description)[0] if inputs.description is None else inputs.description
        try:
            after = request.client.webhooks.update(first.id, description=with_tag(text, tag))
            return _from_api(after, inputs.url, request.client.webhooks.rotate_secret(first.id).secret, tag)
        finally:
            request.reads.forget("webhooks")

    def _kept(
        self,
        request: Request,
        inputs: WebhookSubscriptionInputs,
        made: m.SubscriptionCreated,
        tag: str | None,
    ) -> WebhookSubscriptionState:
        """Of those that several runs made at the same moment each keeps the one with the lowest id, and
        deletes its own otherwise.
        """
        own = _from_api(made, inputs.url, made.secret, tag)
        try:
            same = [one for one in request.client.webhooks.list() if self._is_same(request, inputs, one)]
        except HostingError as error:  # it was made, and its secret is not shown again
            request.warn(
                f"webhook subscription {made.id} was made, and whether another run made one too is "
                f"not known: {error}"
            )
            return own
        first = min(same, key=lambda one: one.id, default=None)
        if first is None or first.id >= made.id:
            return own
        try:
            request.client.webhooks.delete(made.id)
        except NotFound:
            pass
        except HostingError as error:
            request.warn(
                f"webhook subscription {made.id} is a second one beside {first.id} and could not be "
                f"deleted: {error}"
            )
            return own
        at_once = (
            f"another run made webhook subscription {first.id} at the same moment, and only that run "
            f"knows its secret"
        )
        if request.name_is_identity:
            request.warn(f"{at_once}; this run's own was deleted")
            return _from_api(first, inputs.url)
        raise ResourceConflict(
            f"{at_once}, or a request of an interrupted run was processed late; this run's own was deleted. "
            f"Next: run pulumi up again; it "
            "takes over what is left, and makes a new secret",
            id=str(first.id),
        )

    @staticmethod
    def _is_same(request: Request, inputs: WebhookSubscriptionInputs, other: m.Subscription) -> bool:
        """Whether it does what this resource's subscription is to do, so that one of them is too many."""
        if _plain_url(other.url) != _plain_url(inputs.url):
            return False
        if request.name_is_identity:
            return True
        known = request.owned | request.ownership.of_others(request.identity)
        return is_tag_of(_tag(other), request.identity) and str(other.id) not in known

    @staticmethod
    def _remark_on_others(request: Request, inputs: WebhookSubscriptionInputs) -> None:
        wanted = _plain_url(inputs.url)
        for found in request.client.webhooks.list():
            if _plain_url(found.url) == wanted and _tag(found) is None:
                request.warn(
                    f"subscription {found.id} delivers to its url already; every event that both want comes "
                    f"twice. "
                    f"Next: set adopt_id to {found.id} to take it over, or delete it"
                )

    def _adopt(self, request: Request, id: str, inputs: WebhookSubscriptionInputs) -> m.Subscription:
        found = next((one for one in request.client.webhooks.list() if str(one.id) == id), None)
        if found is None:
            raise ResourceError(
                f"adopt_id: there is no webhook subscription {id} on this account. Next: "
                f"correct adopt_id, or leave it out"
            )
        return found

    def _adopted(
        self, request: Request, id: str, inputs: WebhookSubscriptionInputs
    ) -> WebhookSubscriptionState:
        """With the tag that ``settle`` writes, so that no earlier state's deletion fits."""
        found = self._adopt(request, id, inputs)
        request.taken_over.add(id)
        if inputs.rotation is None:
            request.warn(
                f"webhook subscription {id} is taken over; its secret is not known here. Next: set rotation "
                f"to have a new one made"
            )
        return _from_api(
            found,
            inputs.url,
            tag=None if request.name_is_identity else next_tag(_tag(found), request.identity),
        )

    def _announced(self, found: m.Subscription, inputs: WebhookSubscriptionInputs, reason: str) -> Takeover:
        return Takeover(_from_api(found, inputs.url), reason, found.created_at, title=self.title)

    @staticmethod
    def _simulate(request: Request, inputs: WebhookSubscriptionInputs) -> WebhookSubscriptionState:
        request.warn(
            "webhooks are closed to test keys: this subscription is simulated here, and nothing "
            "will be delivered"
        )
        number = (
            KeyRing(0, False, request.identity, "create_webhook", {"url": inputs.url})
            .key(0)
            .rpartition("-")[2][:16]
        )
        return WebhookSubscriptionState(
            id=f"{SIMULATED}{number}",
            url=inputs.url,
            events=inputs.events,
            description=inputs.description,
            active=inputs.active,
            secret=Secret(f"whsec_sandbox{number}"),
        )

    # --- changing

    def update(
        self,
        request: Request,
        state: WebhookSubscriptionState,
        inputs: WebhookSubscriptionInputs,
        fields: frozenset[str],
    ) -> WebhookSubscriptionState:
        if not request.name_is_identity and state.ownership_tag is not None:
            listed = request.client.webhooks.list()
            found = next((one for one in listed if str(one.id) == state.id), None)
            if found is not None and was_taken_over(state.ownership_tag, _tag(found)) == "by a later run":
                raise TakenOver(self.title, state.id, _tag(found), "nothing was changed")
            if found is not None and _tag(found) == state.ownership_tag:
                self._delete_doubles(request, self._doubles(listed, found))
        state = self._patch(request, state, inputs, fields - {"rotation"})
        request.save(state)
        if "rotation" in fields:
            state = state.model_copy(
                update={"secret": request.client.webhooks.rotate_secret(int(state.id)).secret}
            )
            request.info(f"webhook subscription {state.id} has a new secret; the old one has stopped")
        return state

    def _patch(
        self,
        request: Request,
        state: WebhookSubscriptionState,
        inputs: WebhookSubscriptionInputs,
        fields: frozenset[str],
        tag: str | None = None,
    ) -> WebhookSubscriptionState:
        """``tag``: what to write behind the description instead of what is there or was recorded."""
        body = {name: value for name, value in inputs.given().items() if name in fields}
        if "description" in fields:
            text = (
                inputs.description
                or (state.description if "description" not in inputs.model_fields_set else None)
                or ""
            )
            tag = tag or self._present_tag(request, state)
            body["description"] = with_tag(text, tag)
        if not body:
            return state
        try:
            after = request.client.webhooks.update(int(state.id), **body)
        finally:
            request.reads.forget("webhooks")
        is_own = tag is not None and is_tag_of(tag, request.identity)
        return _from_api(after, inputs.url, state.secret, tag if is_own else state.ownership_tag)

    @staticmethod
    def _present_tag(request: Request, state: WebhookSubscriptionState) -> str | None:
        """The tag that stays behind the description: the one that is there if another run or resource
        wrote it, else the own one.
        """
        listed = request.shared(("webhooks",), request.client.webhooks.list)
        there = next((_tag(found) for found in listed if str(found.id) == state.id), None)
        if request.name_is_identity or was_taken_over(state.ownership_tag, there):
            return there
        return state.ownership_tag or ownership_tag(request.identity)

    # --- removing

    def delete(self, request: Request, state: WebhookSubscriptionState) -> None:
        """Delete it, unless its tag shows that it was taken over since: by a later run of the same resource
        (raises ``TakenOver``), or by another resource, with which it stays. Where no tag was recorded, or
        none is there, it is deleted."""
        doubles: list[m.Subscription] = []
        if not request.name_is_identity and state.ownership_tag is not None:
            listed = request.client.webhooks.list()
            found = next((one for one in listed if str(one.id) == state.id), None)
            if found is None:
                return
            taken = was_taken_over(state.ownership_tag, _tag(found))
            if taken == "by a later run":
                raise TakenOver(self.title, state.id, _tag(found))
            if taken == "by another":
                request.warn(
                    f"webhook subscription {state.id} ({state.url}) stays: another resource took it over, "
                    f"its description carries that "
                    "one's tag. It costs nothing"
                )
                return
            doubles = self._doubles(listed, found) if _tag(found) == state.ownership_tag else []
        try:
            request.client.webhooks.delete(int(state.id))
        except NotFound:
            pass
        except (TransportError, InvalidResponse):
            if any(str(found.id) == state.id for found in request.client.webhooks.list()):
                raise
        finally:
            request.reads.forget("webhooks")
        self._delete_doubles(request, doubles)
