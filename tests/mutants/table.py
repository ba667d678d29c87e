"""The safety steps: what is switched off, and the test that fails without it."""

import hmac
import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from pulumi_hosting.actions import action
from pulumi_hosting.api.secrets import Redactor
from pulumi_hosting.client import absence, results, retry
from pulumi_hosting.exactly_once import (
    address_list,
    domain_order,
    generation,
    idempotency_keys,
    key_users,
    order_facts,
    purchase_journal,
    server_search,
    webhook_search,
)
from pulumi_hosting.exactly_once.address_list import read_addresses
from pulumi_hosting.exactly_once.address_purchase import AddressPurchase
from pulumi_hosting.exactly_once.domain_order import DomainOrder
from pulumi_hosting.exactly_once.idempotency_keys import KeyRing, KeyWalk
from pulumi_hosting.exactly_once.order_facts import wait_for_orders
from pulumi_hosting.exactly_once.purchase import Evidence, Fate, Purchase, Verdict
from pulumi_hosting.exactly_once.server_order import ServerOrder
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.budget import Budget
from pulumi_hosting.provider import refusals
from pulumi_hosting.resources import (
    domain,
    server,
    server_calls,
    ssh_key,
    webhook_subscription,
)
from pulumi_hosting.resources.powers import is_provisional
from pulumi_hosting.resources.server_powers import ServerResource
from pulumi_hosting.resources.ssh_key import SshKeyResource
from pulumi_hosting.resources.webhook_subscription import WebhookSubscriptionResource
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.webhooks import signature


@dataclass(frozen=True)
class Mutant:
    """``places``: objects and their attributes that are replaced. ``caught_by``: a test that fails then."""

    step: str
    places: tuple[tuple[Any, str], ...]
    replacement: Any
    caught_by: str

    @contextmanager
    def switched_off(self) -> Iterator[None]:
        """Within, the step is missing."""
        patches = [
            patch.object(owner, name, self.replacement, create=name == "abs") for owner, name in self.places
        ]
        try:
            for one in patches:
                one.start()
            yield
        finally:
            patch.stopall()


def always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def _any_server(self: ServerOrder, server_id: int, ordered_as: str | None) -> Any:
    return self.request.client.servers.get(server_id)


def _first_key_only(self: KeyWalk) -> None:
    raise ResourceError("the key is used")


def _without_a_look(self: Purchase[Any, Any], walk: KeyWalk) -> None:
    walk.leave()


def _never_over(evidence: Evidence) -> Verdict:
    return Verdict(Fate.THERE if evidence.is_there else Fate.ON_ITS_WAY, evidence.payment)


def _only_wait(self: ServerOrder, *, is_ours: bool) -> None:
    wait_for_orders(self.request, self.body)


def _as_it_is(self: AddressPurchase) -> Any:
    return read_addresses(self.request, self.server_id)


def _readable_only(items: Iterable[Any], matches: Callable[[Any], bool]) -> list[Any]:
    return [item for item in results.readable(items)[0] if matches(item)]


def _any_key(self: KeyRing, generation: int) -> str:
    return f"iac3-{secrets.token_hex(20)}"


def _unsorted(value: Any) -> bytes:
    return json.dumps(value, default=str).encode()


def _everything_after_waiting(
    request: Any, resource: Any, inputs: Any, made: Any, save: Any, wait: bool
) -> Any:
    state = apply._stamped(made, request.mode)
    apply.refuse_taken(request, resource, inputs, state)
    request.ownership.add(request.identity, state.id)
    if not (is_provisional(resource, state) and not wait):
        state = apply._settle(request, resource, state, inputs, request.mode)
    save(state)
    return state


_domain_order = DomainOrder.__init__


def _never_finding(
    self: DomainOrder, request: Any, body: Any, auth_code: Any, find: Callable[[], Any]
) -> None:
    _domain_order(self, request, body, auth_code, always(None))


MUTANTS = (
    Mutant(
        "wait for orders under way before ordering",
        ((order_facts, "wait_for_orders"),),
        always(None),
        "tests/resources/test_ordering.py::test_an_order_of_another_stack_that_is_under_way_is_waited_for_and_stops_it",
    ),
    Mutant(
        "look for a living server of the name before ordering",
        ((ServerOrder, "_found"),),
        _only_wait,
        "tests/resources/test_takeovers.py::test_a_server_of_the_name_that_is_not_ours_stops_it_with_advice",
    ),
    Mutant(
        "one order of a name at a time on a machine",
        ((order_facts, "turn"),),
        always(nullcontext()),
        "tests/resources/test_one_name.py::test_two_stacks_with_one_name_on_one_machine_are_one_order_and_one_stop",
    ),
    Mutant(
        "keys are made of the intent",
        ((KeyRing, "key"),),
        _any_key,
        "tests/resources/test_ordering.py::test_killed_anywhere_and_run_again_it_is_one_server_and_one_charge",
    ),
    Mutant(
        "the facts of a key have one encoding",
        ((idempotency_keys, "canonical"),),
        _unsorted,
        "tests/resources/test_keys.py::test_the_order_of_fields_makes_no_other_key",
    ),
    Mutant(
        "the next key where one is used up",
        ((KeyWalk, "leave"),),
        _first_key_only,
        "tests/resources/test_ordering.py::test_a_replay_of_a_dead_server_is_not_taken_for_a_living_one",
    ),
    Mutant(
        "a look behind keys that another run may have used",
        ((Purchase, "_leave"),),
        _without_a_look,
        "tests/resources/test_one_name.py::test_after_a_deletion_two_machines_that_order_at_the_same_moment_buy_one",
    ),
    Mutant(
        "a key that only the question bound is told from one that another order bound",
        ((KeyWalk, "is_bound_by_the_question"),),
        always(False),
        "tests/exactly_once/test_purchase.py::test_a_key_that_only_the_question_bound_is_followed_by_the_next_one",
    ),
    Mutant(
        "the key that an order was accepted with is noted",
        ((generation, "remember"),),
        always(None),
        "tests/resources/test_ordering.py::test_a_name_is_ordered_any_number_of_times_with_one_request_each_on_one_machine",
    ),
    Mutant(
        "of two orders for one declaration at the same moment the second stops",
        ((ServerOrder, "_refuse_another_order"),),
        always(None),
        "tests/resources/test_ordering.py::test_of_two_states_of_one_identity_with_different_bodies_the_second_stops",
    ),
    Mutant(
        "a purchase is noted before it is sent",
        ((purchase_journal, "begin"),),
        always(None),
        "tests/exactly_once/test_purchase_failures.py::test_a_killed_run_leaves_its_entry_and_the_next_one_keeps_when_it_began",
    ),
    Mutant(
        "an accepted server must live",
        ((ServerOrder, "_alive"),),
        _any_server,
        "tests/resources/test_ordering.py::test_a_replay_of_a_dead_server_is_not_taken_for_a_living_one",
    ),
    Mutant(
        "a stored refusal is recognised",
        ((Purchase, "_contradicted"),),
        always(False),
        "tests/resources/test_ordering.py::test_a_stored_refusal_does_not_stick",
    ),
    Mutant(
        "an order of this run is told from a replay",
        ((Purchase, "is_of_this_call"),),
        always(False),
        "tests/resources/test_ordering.py::test_an_order_that_fails_before_its_answer_is_read_is_not_placed_again",
    ),
    Mutant(
        "money is looked at after a failed order",
        ((Purchase, "_paid"),),
        always([]),
        "tests/resources/test_ordering.py::test_money_that_no_server_explains_stops_it",
    ),
    Mutant(
        "money is looked at after a failed payment",
        ((Purchase, "_paid"),),
        always([]),
        "tests/resources/test_actions_charged.py::test_money_that_is_gone_without_effect_stops_everything",
    ),
    Mutant(
        "a refunded purchase is no purchase",
        ((address_list, "judge"),),
        _never_over,
        "tests/resources/test_addresses_refunded.py::test_a_refunded_purchase_is_gone_when_it_is_read_and_the_next_run_buys",
    ),
    Mutant(
        "a registration that was refused is no domain",
        ((domain_order, "judge"),),
        _never_over,
        "tests/resources/test_domain_refused.py::test_the_next_run_registers_it_again_and_announces_no_replay",
    ),
    Mutant(
        "an id is saved before it is waited for",
        ((apply, "_created"),),
        _everything_after_waiting,
        "tests/provider/test_half_way.py::test_what_was_ordered_and_not_set_says_that_it_exists_and_was_charged",
    ),
    Mutant(
        "an absence from a list is confirmed by id",
        ((order_facts, "server_by_id"),),
        always(None),
        "tests/resources/test_reads.py::test_a_server_that_the_list_lacks_is_asked_for_by_its_id",
    ),
    Mutant(
        "a damaged item is no other item",
        ((results.Damaged, "__getattr__"),),
        always(None),
        "tests/resources/test_damaged_answers.py::test_a_list_with_a_damaged_item_proves_no_absence_and_nothing_is_ordered",
    ),
    Mutant(
        "a damaged list proves no absence",
        ((results, "matching"),),
        _readable_only,
        "tests/client/test_damage.py::test_a_damaged_item_stays_in_the_list_and_proves_no_absence",
    ),
    Mutant(
        "a key shows whose server it is",
        ((Purchase, "replays"),),
        always(()),
        "tests/resources/test_names_as_identity.py::test_orders_are_found_by_their_key_after_stops_that_probed_keys",
    ),
    Mutant(
        "a key shows whose domain it is",
        ((Purchase, "replays"),),
        always(()),
        "tests/resources/test_resources_killed.py::test_killed_anywhere_and_run_again_elsewhere_it_is_bought_once",
    ),
    Mutant(
        "look for the tag of a name before a playbook orders it",
        ((ServerResource, "refuse_renamed"), (server_search, "refuse_renamed_order")),
        always(None),
        "tests/ansible/test_renamed.py::test_a_renamed_server_is_not_ordered_again",
    ),
    Mutant(
        "the ownership tag shows whose server it is",
        ((server_search, "is_tag_of"),),
        always(False),
        "tests/resources/test_takeovers.py::test_what_a_killed_run_ordered_is_taken_over_within_seven_days_and_then_on_request",
    ),
    Mutant(
        "another machine with the tag is not taken over",
        ((server_search, "not_as_wanted"),),
        always(()),
        "tests/resources/test_names_as_identity.py::test_another_machine_that_carries_the_tag_is_not_taken_over",
    ),
    Mutant(
        "a server is compared with the state before it is changed or deleted",
        ((server_calls, "must_be_own"),),
        always(None),
        "tests/provider/test_old_states.py::test_a_server_that_was_ordered_by_hand_is_not_touched",
    ),
    Mutant(
        "the order is asked which server it made",
        ((server_calls, "_made_by"),),
        always(None),
        "tests/provider/test_old_states.py::test_a_server_that_was_ordered_by_hand_is_not_touched",
    ),
    Mutant(
        "a subscription is compared with the state before it is changed or deleted",
        ((webhook_subscription, "must_be_own"),),
        always(None),
        "tests/provider/test_old_states.py::test_another_subscription_is_not_touched",
    ),
    Mutant(
        "a key is compared with the state before it is deleted",
        ((ssh_key, "must_be_the_recorded_one"),),
        always(None),
        "tests/provider/test_old_states.py::test_another_persons_key_is_not_deleted",
    ),
    Mutant(
        "a domain is compared with the state before it is changed",
        ((domain, "must_be_the_recorded_one"),),
        always(None),
        "tests/provider/test_old_states.py::test_another_domain_goes_on_renewing",
    ),
    Mutant(
        "an address is compared with the state before it is released",
        ((address_list, "must_be_the_recorded_one"),),
        always(None),
        "tests/provider/test_old_states.py::test_another_address_and_its_record_are_not_touched",
    ),
    Mutant(
        "the tag is looked for where a server is gone",
        ((server, "tagged_elsewhere"), (server_calls, "tagged_elsewhere")),
        always(None),
        "tests/provider/test_old_states.py::test_a_deletion_of_what_was_replaced_since_names_what_is_there_and_its_commands_delete_it",
    ),
    Mutant(
        "a key that another stack uses stays",
        ((key_users, "of_other_stacks"),),
        always([]),
        "tests/resources/test_ssh_key.py::test_a_key_stays_while_a_server_of_another_stack_uses_it",
    ),
    Mutant(
        "addresses of unknown origin stop a purchase",
        ((AddressPurchase, "_bought_before"),),
        always(None),
        "tests/resources/test_resources_killed.py::test_an_unknown_address_stops_the_purchase",
    ),
    Mutant(
        "a bought address must be listed before the next is bought",
        ((AddressPurchase, "_when_listed"),),
        _as_it_is,
        "tests/resources/test_addresses_concurrent.py::test_a_purchase_beside_one_that_is_still_coming_looks_again",
    ),
    Mutant(
        "a domain is looked for after an error",
        ((DomainOrder, "__init__"),),
        _never_finding,
        "tests/resources/test_resources_killed.py::test_a_lost_answer_costs_nothing_twice",
    ),
    Mutant(
        "a subscription is found by its tag",
        ((webhook_search, "find_tagged"),),
        always([]),
        "tests/resources/test_webhook_subscription.py::test_killed_before_it_was_recorded_it_is_taken_over_with_what_came_late",
    ),
    Mutant(
        "second subscriptions are deleted",
        ((webhook_search, "doubles"),),
        always([]),
        "tests/resources/test_webhook_subscription.py::test_a_request_that_is_processed_after_the_creation_goes_with_the_next_change",
    ),
    Mutant(
        "a second subscription that a receiver accepts stays",
        ((webhook_search, "_is_in_use"),),
        always(False),
        "tests/provider/test_late_requests.py::test_one_that_a_receiver_accepts_stays_and_is_named",
    ),
    Mutant(
        "a second subscription is deleted without another change",
        ((WebhookSubscriptionResource, "doubles"),),
        always([]),
        "tests/ansible/test_late_webhooks.py::test_the_next_task_deletes_it",
    ),
    Mutant(
        "an SSH key is found by its material",
        ((SshKeyResource, "_same_material"),),
        always(None),
        "tests/resources/test_ssh_key.py::test_what_is_found_after_a_crash_is_taken_over",
    ),
    Mutant(
        "planned charges are compared with max_charge",
        ((Budget, "refusal"),),
        always(None),
        "tests/provider/test_limits.py::test_one_limit_over_all_providers_of_a_run",
    ),
    Mutant(
        "charges are booked against max_charge",
        ((Budget, "charged"),),
        always(None),
        "tests/provider/test_limits.py::test_a_charge_above_its_announced_price_stops_the_run",
    ),
    Mutant(
        "Ansible books charges against max_charge",
        ((Budget, "book"),),
        always(None),
        "tests/ansible/test_planned.py::test_objects_of_a_new_server_are_priced_or_reported_as_unpriced",
    ),
    Mutant(
        "a key of the other mode leaves an object alone",
        ((action, "guard"), (apply, "guard")),
        always(None),
        "tests/resources/test_actions.py::test_a_test_key_looks_at_a_real_server_and_leaves_it_alone",
    ),
    Mutant(
        "another account's key is noticed",
        ((refusals, "must_be_its_account"),),
        always(None),
        "tests/provider/test_limits.py::test_another_accounts_key_is_noticed_before_anything_is_done",
    ),
    Mutant(
        '"not found" by something else is no absence',
        ((absence, "judged"),),
        lambda error, *_: error,
        "tests/resources/test_actions.py::test_not_found_by_something_else_proves_nothing",
    ),
    Mutant(
        "secrets are redacted",
        ((Redactor, "__call__"),),
        lambda self, text: text,
        "tests/client/test_secrets.py::test_no_failure_shows_a_secret",
    ),
    Mutant(
        "the own key is removed from answers",
        ((Redactor, "without_own_key"),),
        lambda self, body: body,
        "tests/client/test_damage.py::test_the_own_key_in_an_answer_is_not_in_a_result",
    ),
    Mutant(
        "webhook signatures are compared",
        ((hmac, "compare_digest"),),
        always(True),
        "tests/webhooks/test_signature.py::test_a_signature_that_does_not_match_is_refused",
    ),
    Mutant(
        "webhooks of another time are refused",
        ((signature, "abs"),),
        always(0),
        "tests/webhooks/test_signature.py::test_a_delivery_from_another_time_is_refused",
    ),
    Mutant(
        "a write without a key is sent once",
        ((retry, "may_repeat"),),
        always(True),
        "tests/client/test_retry_decisions.py::test_a_mutation_without_a_key_is_never_sent_twice",
    ),
)
"""In the order of a purchase; then money, keys, answers and webhooks."""
