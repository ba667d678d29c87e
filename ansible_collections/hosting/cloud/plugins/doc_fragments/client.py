# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations


class ModuleDocFragment:
    # What every module takes and needs.
    DOCUMENTATION = r"""
options:
  api_key:
    description:
      - The API key, C(vk_live_...) or C(vk_test_...).
      - If not set, the environment variable E(HOSTING_API_KEY) of the machine that does the work is used.
      - Keep it in a vault and hand it over with C(module_defaults). What stands under C(environment) of a task is printed at C(-vvvv).
    type: str
  base_url:
    description:
      - Address of the API, for example V(https://api.example.com/v1). It must be https, except on this machine itself.
      - If not set, the environment variable E(HOSTING_BASE_URL) of the machine that does the work is used.
    type: str
  timeout:
    description: Seconds to wait for one answer of the API. Reads, and orders that carry a key, are repeated after passing failures.
    type: float
    default: 30
  mode:
    description:
      - Say which keys may change anything, V(live) or V(test) ones. A key of the other mode may then look and run in check mode only.
      - If not set, the environment variable E(HOSTING_MODE) of the machine that does the work is used.
      - Without it, either key works. A test key never changes what is real, and a live key never what was only simulated.
      - Modules that only read take it so that it can be set for the whole group.
    type: str
    choices: [live, test]
  max_charge:
    description:
      - What all tasks of a run may charge to the balance of one account together, a plain decimal number such as V(25.00). What would go
        beyond, or has no known price, is refused before it is ordered. An empty text is an error.
      - If not set, the environment variable E(HOSTING_MAX_CHARGE) of the machine that does the work is used.
      - Each task compares what the run has charged so far, with or without a limit, and its own price with its own O(max_charge). In check
        mode the predicted charges are counted. The next run begins at nothing; if it finds that an earlier one was killed, it reports what
        that one had charged.
      - A task with C(async) is priced and booked before it begins, and may charge what was booked. Without O(max_charge) it is counted with
        its announced price and charges what it does; it is not counted where the controller cannot learn that price.
      - Where a charge turns out higher than announced, the task warns of it, and the run orders nothing more.
      - Modules that charge nothing take it so that it can be set for the whole group.
    type: str
requirements:
  - python >= 3.11
  - pulumi-hosting, in the version that requirements.txt of the collection names
notes:
  - "The work is done by the controller itself, in Ansible's own Python, wherever the connection is local. With another host, C(become) or
    C(async) a module does it, and the Python package C(pulumi-hosting) must be installed for the interpreter that runs the module. As soon
    as C(localhost) stands in an inventory, Ansible looks for an interpreter of its own there; C(ansible_python_interpreter) as in the
    examples names the one Ansible itself runs with."
  - "120 requests a minute are allowed for each API key, 20 for expensive ones such as orders, whatever the number of forks. Requests that
    the API turns away for that reason wait and are sent again; O(ignore:throttle) helps where many hosts do the same at once."
  - "Every failure has the return value C(failure): RV(ignore:failure.code) as the API names it, or what stopped the module (such as
    V(invalid_input), V(max_charge), V(not_found), V(wrong_mode), V(unchangeable), V(ambiguous_match), V(resource_conflict), V(wait_timeout), else V(refused)),
    RV(ignore:failure.status) (HTTP), RV(ignore:failure.request_id), RV(ignore:failure.idempotency_key),
    RV(ignore:failure.outcome_unknown) (whether the request may have been carried out) and RV(ignore:failure.fields) (option to reason)."
attributes:
  action_group:
    description: Use C(group/hosting.cloud.all) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - hosting.cloud.all
"""

    # What changes something leaves the same traces.
    CHANGE = r"""
notes:
  - "With a test key nothing is bought: the service simulates what is sent, and does not show all of it afterwards. A simulated server is
    shown for a day, to the key that made it; other simulated objects are not found again, so that such a task reports a change each time.
    Files for secrets are not written with a test key."
attributes:
  check_mode:
    description: Can run in C(check_mode) and return the changed status and the predicted object without changing anything. Nothing is sent
      but reads, and nothing is waited for. What earlier tasks of the run would make, change or delete is taken into account. What cannot be
      known yet, such as the id of a new object, is V(null).
    support: full
  diff_mode:
    description: Returns what changes, before and after, when in C(diff) mode. Secrets are never part of it.
    support: full
"""

    # Modules that wait.
    WAIT = r"""
options:
  wait:
    description:
      - Whether to wait for what the service finishes later, such as an order that is still being carried out.
      - What can be set only afterwards (notes, for example) is then left to a later run.
    type: bool
    default: true
  wait_timeout:
    description:
      - Seconds to wait for it.
      - When they are over the task fails and says so. Running it again goes on waiting and repeats nothing.
    type: float
    default: 600
"""

    # Modules that bring one object to a wished state.
    NOUN = r"""
options:
  state:
    description:
      - V(present) makes the object or changes what differs.
      - V(absent) removes it. Options other than those that name the object do nothing then.
    type: str
    choices: [present, absent]
    default: present
notes:
  - What a task does not mention stays as it is.
"""

    # Modules that only read.
    INFO = r"""
attributes:
  check_mode:
    description: Can run in C(check_mode) and return the same as otherwise. Only reads are sent.
    support: full
  diff_mode:
    description: Changes nothing, so there is nothing to compare.
    support: N/A
"""
