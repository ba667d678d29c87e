# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations


class ModuleDocFragment:
    # Options and notes of every module. A literal, since ansible-test reads it without running it.
    DOCUMENTATION = r"""
options:
  api_key:
    description:
      - The API key, C(vk_live_...) or C(vk_test_...).
      - If not set, the task's machine provides it in E(HOSTING_API_KEY), in the file E(HOSTING_API_KEY_FILE),
        or as the output of the command E(HOSTING_API_KEY_COMMAND).
      - Keep it in a vault and pass it with C(module_defaults). Values under C(environment) of a task are
        printed at C(-vvvv).
    type: str
  base_url:
    description:
      - Address of the API, for example V(https://api.example.com/v1). Must be https, except for localhost.
      - If not set, the environment variable E(HOSTING_BASE_URL) of the machine that runs the task is used.
    type: str
  timeout:
    description: Seconds to wait for one response of the API. Reads, and orders with an idempotency key, are
      retried after temporary failures.
    type: float
    default: 30
  rate_limit_timeout:
    description:
      - Seconds that one request may wait for the rate limit of the API key. If there is no room by then, the
        task fails and the request is not sent.
      - All tasks of a user on one machine share the limit, first come, first served. A wait of more than
        three seconds is announced.
    type: float
    default: 600
  store:
    description:
      - A Redis or Valkey server that several machines share, V(redis://…) or V(rediss://…). They then share
        the rate limit, take turns with purchases and know of interrupted ones.
      - If not set, the environment variable E(HOSTING_STORE) of the machine that runs the task is used.
      - If neither is set, each machine uses its own files.
    type: str
  mode:
    description:
      - Which keys may change anything, V(live) or V(test) ones. A key of the other mode may only read and run
        in check mode.
      - If not set, the environment variable E(HOSTING_MODE) of the machine that runs the task is used.
      - If neither is set, either key works. A test key never changes real objects, and a live key never
        changes simulated ones.
    type: str
    choices: [live, test]
  max_charge:
    description:
      - The most that all tasks of a run together may charge to the balance of one account, a plain decimal
        number such as V(25.00). A purchase that would exceed it, or has no known price, is refused before it
        is ordered. An empty text is an error.
      - If not set, the environment variable E(HOSTING_MAX_CHARGE) of the machine that runs the task is used.
      - Each task adds its own price to what the run has charged so far, with or without a limit, and compares
        the total with its own O(max_charge). Check mode counts the predicted charges. The next run starts at
        zero. If a run was killed, the next one reports what it had charged.
      - A task with C(async) is priced and booked before it starts, and may charge what was booked. Without
        O(max_charge) it counts with its announced price and may charge any amount. It does not count if the
        controller cannot find out that price.
      - If a charge turns out higher than announced, the task warns, and the run orders nothing more.
    type: str
  budget:
    description:
      - What a calendar month (UTC) may cost, such as V(100.00/month). A purchase is refused before it is
        ordered if it and all debits of the month, whoever made them, less the refunds, would exceed the
        budget. The debits are read again before each purchase, which needs the scope C(balance:read).
      - If not set, the environment variable E(HOSTING_BUDGET) of the machine that runs the task is used.
    type: str
requirements:
  - python >= 3.11
  - pulumi-hosting, of this collection's version or newer
notes:
  - "If the connection is local, the task runs on the controller, in Ansible's own Python. With another host,
    C(become) or C(async) it runs as a module, and the module's interpreter needs the Python package
    C(pulumi-hosting). If C(localhost) is in the inventory, Ansible looks for a
    separate interpreter there; set C(ansible_python_interpreter) as in the examples to use Ansible's own."
  - "The API allows 120 requests a minute for each API key, and 20 expensive ones such as orders, whatever the
    number of forks. Further requests wait until there is room again, at most O(rate_limit_timeout)."
  - "Every failure has the return value C(failure): RV(ignore:failure.code) is the API's code, or the reason
    why the module stopped (such as V(invalid_input), V(max_charge), V(not_found), V(wrong_mode),
    V(unchangeable), V(ambiguous_match), V(resource_conflict), V(wait_timeout), else V(refused)),
    RV(ignore:failure.status) (HTTP), RV(ignore:failure.request_id), RV(ignore:failure.idempotency_key),
    RV(ignore:failure.outcome_unknown) (whether the request may have been carried out) and
    RV(ignore:failure.fields) (option to reason)."
attributes:
  action_group:
    description: Use C(group/hosting.cloud.all) in C(module_defaults) to set defaults for every module. All
      accept O(mode), O(max_charge) and O(budget), even those that only read.
    support: full
    membership:
      - hosting.cloud.all
"""

    # Modules that change something.
    CHANGE = r"""
notes:
  - "With a test key nothing is bought: the service simulates the request, and does not show all of its result
    afterwards. It shows a simulated server for a day, to the key that made it. Other simulated objects are
    not found again, so the task reports a change each time. The first change of a run comes with a warning
    that it is simulated. Files for secrets are not written with a test key."
attributes:
  check_mode:
    description: Can run in C(check_mode) and return the changed status and the predicted object without
      changing anything. It only reads, and does not wait. It counts what earlier tasks of the run would
      create, change or delete. Values that are not known yet, such as the id of a new object, are V(null).
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
      - Whether to wait until the service has finished, for example an order that is being processed.
      - If V(false), values that can only be set afterwards (notes, for example) are left to a later run.
    type: bool
    default: true
  wait_timeout:
    description:
      - Seconds to wait for it.
      - The task fails if the service is not done by then. Run it again to keep waiting. Nothing is repeated.
    type: float
    default: 600
"""

    # Modules that bring one object to a declared state.
    RESOURCE = r"""
options:
  state:
    description:
      - V(present) creates the object or changes what differs.
      - V(absent) deletes it. Only the options that name the object count then.
    type: str
    choices: [present, absent]
    default: present
notes:
  - Options that a task does not set are left as they are.
"""

    # Modules that only read.
    INFO = r"""
attributes:
  check_mode:
    description: Can run in C(check_mode) and return the same as otherwise. It only reads.
    support: full
  diff_mode:
    description: Changes nothing, so there is nothing to compare.
    support: N/A
"""
