"""Refusals that are not provoked in a frontend, each with the reason."""

NOWHERE = {
    "exactly_once/address_purchase.py Owners.claimed": "tests/resources/test_addresses_concurrent.py::"
    "test_where_refusals_are_not_remembered_two_machines_stop_and_pay_no_more",
    "exactly_once/idempotency_keys.py KeyWalk.leave": "tests/exactly_once/test_key_probe.py::"
    "test_a_service_that_answers_every_key_with_a_conflict_is_not_asked_for_ever",
    "exactly_once/idempotency_keys.py KeyWalk.leave 2": "tests/exactly_once/test_key_probe.py::"
    "test_if_nothing_tells_which_keys_are_used_the_next_one_is_tried_and_sixteen_are_enough",
    "exactly_once/purchase.py Purchase._after_a_replay": "tests/exactly_once/test_purchase_failures.py::"
    "test_an_answer_to_an_unused_key_is_no_replay_and_nothing_is_bought_beside_it",
    "exactly_once/purchase.py Purchase._after_failure": "tests/exactly_once/test_purchase_failures.py::"
    "test_a_failure_whose_charge_is_kept_stops_and_leaves_the_entry",
    "exactly_once/purchase.py Purchase._leave": "tests/exactly_once/test_purchase.py::"
    "test_while_a_request_with_a_key_that_is_passed_is_under_way_nothing_is_sent",
    "exactly_once/server_order.py ServerOrder._refuse_another_order": "tests/resources/test_ordering.py::"
    "test_of_two_states_of_one_identity_with_different_bodies_the_second_stops",
    "planning/monthly_budget.py MonthlyBudget.paying": "an unknown price is refused before it is paid",
    "resources/domain.py DomainBase._from_order": "an order has an answer or a domain",
    "resources/powers.py listed": "no frontend lists what the API has no list of",
    "resources/ssh_key.py SshKeyResource.update": "every change of a key replaces it",
    "resources/ssh_ready.py ": "tests/resources/test_ssh_ready.py::"
    "test_what_does_not_answer_was_bought_and_is_waited_for_by_the_next_run",
    "session/domain_names.py domain_name": "the API's own rule for names comes first",
    "session/session.py Session.client": "every frontend gives its session a client",
    "session/snapshot_text.py from_text": "what says nothing is asked for again",
}
"""In no frontend: the reason, or the test that makes several processes meet in one moment."""

_NO_STATE = "a playbook has no state, and knows an object by its name"
_IN_ANSIBLE = {
    "actions/action.py OfOne._one_object": "Ansible's rules ask for one of the options",
    "actions/server_renew.py ServerRenewInputs._one_period": "Ansible's rules exclude the two options",
    "exactly_once/address_list.py read_addresses": "the plan and the purchase look at one list",
    "exactly_once/address_purchase.py AddressPurchase._bought_before": "the position names the address",
    "exactly_once/address_purchase.py Owners.must_be_adoptable": "the position names the address",
    "exactly_once/order_facts.py wait_for_orders": "an order under way is found by its name",
    "exactly_once/ownership_check.py ": _NO_STATE,
    "exactly_once/server_search.py find_tagged": _NO_STATE,
    "exactly_once/server_search.py must_be_allowed": _NO_STATE,
    "exactly_once/server_search.py name_conflict": _NO_STATE,
    "exactly_once/server_search.py refuse_renamed_order": _NO_STATE,
    "exactly_once/webhook_search.py ": _NO_STATE,
    "planning/apply.py refuse_taken": "nothing is replaced that adopt_id may name",
    "planning/budget.py Budget.must_book": "the collection books what its tasks pay",
    "planning/diff.py refuse_forbidden": "the module has no option rebuild",
    "planning/modes_and_scopes.py guard 2": "what is simulated is not shown to a live key",
    "resources/base.py OneOf.__call__": "the option has choices",
    "resources/domain.py DomainBase._adoptable": "the module has no option adopt_id",
    "resources/domain.py DomainBase._must_stand_nowhere_else": _NO_STATE,
    "resources/domain.py DomainBase.create": _NO_STATE,
    "resources/domain.py DomainBase.update": _NO_STATE,
    "resources/domain.py forget_order": _NO_STATE,
    "resources/ptr.py PtrResource.create": "the plan and the creation look at one list",
    "resources/server_calls.py must_be_readable": _NO_STATE,
    "resources/server_calls.py must_have_scope_for": "the plan has asked for the scopes",
    "resources/server_calls.py must_stand_nowhere_else": _NO_STATE,
    "resources/server_fields.py ServerInputs._check_period": "Ansible's rules exclude the two options",
    "resources/server_fields.py ServerInputs.model_post_init": "state says what power says",
    "resources/server_ip.py ServerIpResource._adoptable 2": _NO_STATE,
    "resources/server_ip.py ServerIpResource._forget_purchase": _NO_STATE,
    "resources/server_ip.py ServerIpResource.read": _NO_STATE,
    "resources/server_ip.py ServerIpResource.wait": _NO_STATE,
    "resources/ssh_key.py SshKeyResource._adoptable": "the module has no option adopt_id",
    "resources/webhook_subscription.py WebhookSubscriptionResource._adopt": "the module has no adopt_id",
    "resources/webhook_subscription.py WebhookSubscriptionResource._must_be_own": _NO_STATE,
    "resources/webhook_subscription.py WebhookSubscriptionResource.read": _NO_STATE,
}
_BY_NAME = "a program has a state, and finds nothing by its name"
_ENSURE = "the engine asks for each step"
_IN_PULUMI = {
    "actions/": "a program has no actions; keep_paid renews",
    "exactly_once/purchase.py Purchase._after_failure 2": "no resource shows a refunded charge as an invoice",
    "exactly_once/server_order.py ServerOrder._found": _BY_NAME,
    "exactly_once/server_search.py _renamed_conflict": _BY_NAME,
    "planning/apply.py _ensure_change": _ENSURE,
    "planning/apply.py _lookup": _ENSURE,
    "planning/apply.py _refuse_another": _ENSURE,
    "planning/apply.py _refuse_taken_name": _ENSURE,
    "planning/apply.py _whole": _ENSURE,
    "planning/apply.py ensure": _ENSURE,
    "planning/apply.py predict_create": _ENSURE,
    "planning/budget.py Budget.": "the settings of the stack are checked, and spending.py books",
    "planning/resolve_names.py with_resolved_names": _ENSURE,
    "resources/domain_powers.py DomainResource.all": _BY_NAME,
    "resources/server_powers.py ServerResource._set_late": "the plan has asked for the scope",
    "resources/server_powers.py ServerResource.find": _BY_NAME,
    "resources/ssh_key.py SshKeyResource.find.pick": _BY_NAME,
    "resources/webhook_subscription.py WebhookSubscriptionResource.find": _BY_NAME,
    "session/domain_names.py ascii_name": "the API's own rule for names comes first",
}
_NOT_DECLARED = "a command declares nothing, and orders no object"
_IN_COMMANDS = {
    "actions/keep_paid.py ": _NOT_DECLARED,
    "exactly_once/": _NOT_DECLARED,
    "planning/": _NOT_DECLARED,
    "resources/": _NOT_DECLARED,
    "session/cost.py ": _NOT_DECLARED,
    "session/text.py ": _NOT_DECLARED,
}
ELSEWHERE = {"pulumi": _IN_PULUMI, "ansible": _IN_ANSIBLE, "command line": _IN_COMMANDS}
"""By frontend: the site, or what the names of several begin with, and why it refuses nothing there. A program
of the client imports none of these folders."""
