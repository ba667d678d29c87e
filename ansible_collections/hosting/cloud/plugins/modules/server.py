#!/usr/bin/python
# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: server
short_description: Order, change and delete a server
version_added: 0.1.0
description:
  - Makes sure that a server exists and is as declared, or that it does not exist.
  - A server is recognised by O(id), else by its O(name). If several living servers have the name, the task fails and lists their ids.
    O(id) together with another O(name) renames it, unless a living server has that name already.
  - Ordering is paid from the balance of the account, at once. A task that was interrupted is run again without danger. It finds what was
    ordered, waits for it if need be, and does not order a second time.
  - O(name), O(notes) and O(auto_renew) can be changed. What a server was ordered with cannot. If it differs from what is declared, the
    task fails and changes nothing.
  - Deleting a server destroys its data and credits the unused part of what was paid to the balance.
author:
  - The pulumi-hosting authors (@pulumi-hosting)
options:
  id:
    description:
      - Id of the server.
    type: str
  name:
    description:
      - Host name, made of C(A-Z a-z 0-9 . _ -). Needed to order a server.
    type: str
  tariff_id:
    description:
      - Id of the tariff, from the catalog. Needed to order a server. It cannot be changed afterwards.
    type: int
  os:
    description:
      - Image slug, from the catalog. Needed to order a server. Afterwards it is changed with O(rebuild=reinstall) only.
    type: str
  months:
    description:
      - Months paid when ordering. Not together with O(hours). If neither is set, one month is ordered.
    type: int
    choices: [1, 3, 6, 12]
  hours:
    description:
      - Hours paid when ordering an hourly server, V(1) to V(720).
    type: int
  billing_cycle:
    description:
      - How the server is paid. It cannot be changed afterwards.
    type: str
    choices: [monthly, hourly]
  ssh_key_ids:
    description:
      - Ids of SSH keys of the account that are installed when ordering. The service does not show them afterwards, so a later difference
        cannot be seen.
      - In check mode a V(null) among them, the id of a key that is not there yet, is passed over.
    type: list
    elements: str
  password:
    description:
      - "Root password when ordering: 8 to 64 characters of C(A-Z a-z 0-9 ! @ # $ % ^ & * -) with a letter and a digit. A later difference
        cannot be seen."
      - Without it the service generates one. That one is never returned, because results are kept and printed, and Ansible would mask it in
        a registered variable as well. Have it made on the controller instead, as in the examples, or order with O(ssh_key_ids).
    type: str
  promo_code:
    description:
      - Promo code when ordering.
    type: str
  custom_fields:
    description:
      - Answers to the provider's extra order questions, up to 30 texts.
    type: dict
  auto_renew:
    description:
      - Whether the service renews the server from the balance.
    type: bool
  notes:
    description:
      - Free text shown in the cabinet. An explicit V(null) empties it.
    type: str
  power:
    description:
      - Start or stop the server. Without it, it is left as it is.
    type: str
    choices: [running, stopped]
  rebuild:
    description:
      - What another O(os) does to a server that exists. V(reinstall) installs it on the same server, B(which erases its disk); anything
        else refuses the change, since a replacement costs money.
    type: str
    choices: [replace, reinstall, forbid]
  adopt_id:
    description:
      - When no server has the O(name), take over this one, whatever its name, instead of ordering. O(tariff_id) and O(os) must be the
        declared ones.
    type: str
  order_attempt:
    description:
      - Raise this number to order again where the module stopped rather than buy a second server for one declaration.
    type: int
extends_documentation_fragment:
  - hosting.cloud.client
  - hosting.cloud.client.noun
seealso:
  - module: hosting.cloud.server_info
  - module: hosting.cloud.ssh_key
"""

EXAMPLES = r"""
- name: A server with a key
  hosts: localhost
  gather_facts: false
  vars:
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
  module_defaults:
    group/hosting.cloud.all:
      base_url: https://api.example.com/v1
      api_key: "{{ vault_hosting_api_key }}"
  tasks:
    - name: Add the key
      hosting.cloud.ssh_key:
        name: laptop
        public_key: "{{ lookup('ansible.builtin.file', '~/.ssh/id_ed25519.pub') }}"
      register: laptop

    - name: Order the server
      hosting.cloud.server:
        name: web-1
        tariff_id: 1
        os: debian-12
        ssh_key_ids: ["{{ laptop.ssh_key.id }}"]
        notes: Front end
      register: web

    - name: Order one with a root password that is made once and kept in a file of the controller
      hosting.cloud.server:
        name: db-1
        tariff_id: 1
        os: debian-12
        password: "{{ lookup('ansible.builtin.password', 'credentials/db-1', length=24, chars=['ascii_letters', 'digits']) }}"

    - name: Empty the notes, and leave everything else as it is
      hosting.cloud.server:
        name: web-1
        notes: null

    - name: Rename it
      hosting.cloud.server:
        id: "{{ web.server.id | default('0', true) }}"
        name: www-1

    - name: Delete it
      hosting.cloud.server:
        name: www-1
        state: absent
"""

RETURN = r"""
server:
  description: The server as it is after the task, or as it would be in check mode. Null with O(state=absent).
  returned: success
  type: dict
  contains:
    id:
      description: Id of the server, null in check mode as long as there is none.
      type: str
      sample: "4711"
    mode:
      description: V(live), or V(test) for what was only simulated with a test key.
      type: str
      sample: live
    name:
      description: Host name.
      type: str
      sample: web-1
    hostname:
      description: Host name kept by the panel.
      type: str
      sample: web-1
    status:
      description: V(active), V(stopped), V(suspended) or V(pending_cancel). V(provisioning) in check mode while it is being created.
      type: str
      sample: active
    tariff_id:
      description: Id of the tariff, null once the tariff is gone.
      type: int
      sample: 12
    tariff:
      description: Name of the tariff.
      type: str
      sample: VDS-2
    os:
      description: Image slug.
      type: str
      sample: debian-12
    os_shown:
      description: Image slug that the service goes on showing after a reinstallation, where it does not follow. Null otherwise.
      type: str
      sample: debian-12
    power:
      description: V(running) or V(stopped). Null while the service keeps it suspended.
      type: str
      sample: running
    location:
      description: Name of the location.
      type: str
      sample: Amsterdam
    ip:
      description: Primary address.
      type: str
      sample: 203.0.113.7
    ips:
      description: Every address, v4 before v6.
      type: list
      elements: str
      sample: [203.0.113.7]
    notes:
      description: Free text shown in the cabinet.
      type: str
      sample: Front end
    auto_renew:
      description: Whether the service renews it from the balance.
      type: bool
      sample: true
    billing_cycle:
      description: V(monthly) or V(hourly).
      type: str
      sample: monthly
    price_monthly:
      description: Price per month, a decimal number as text.
      type: str
      sample: "5.00"
    recurring_amount:
      description: Price of the next renewal, a decimal number as text.
      type: str
      sample: "5.00"
    currency:
      description: ISO 4217 code of the amounts, where the service names it.
      type: str
      sample: EUR
    next_due_at:
      description: When the next renewal is due, RFC 3339 in UTC.
      type: str
      sample: "2026-12-21T10:00:00Z"
    refund_quote:
      description: What a deletion would credit now, where it was read by id. C(amount) is a decimal number as text.
      type: dict
      sample: {amount: "4.20", currency: EUR, refundable: true}
    blocked:
      description: Whether staff has locked it.
      type: bool
      sample: false
    created_at:
      description: When it was created, RFC 3339 in UTC.
      type: str
      sample: "2026-11-21T10:00:00Z"
    invoice_id:
      description: Invoice of the order. Null when nothing was ordered by this task.
      type: str
      sample: "801"
    charged:
      description: What the order cost, a decimal number as text. Null when nothing was ordered by this task.
      type: str
      sample: "5.00"
    ssh_key_ids:
      description: Ids of the SSH keys it was ordered with by this task. Null otherwise, since the service does not show them.
      type: list
      elements: str
      sample: ["31"]
"""

from ansible_collections.hosting.cloud.plugins.module_utils.runner import run_noun

OPTIONS = {
    "id": {"type": "str"},
    "name": {"type": "str"},
    "tariff_id": {"type": "int"},
    "os": {"type": "str"},
    "months": {"type": "int", "choices": [1, 3, 6, 12]},
    "hours": {"type": "int"},
    "billing_cycle": {"type": "str", "choices": ["monthly", "hourly"]},
    "ssh_key_ids": {"type": "list", "elements": "str", "no_log": False},
    "password": {"type": "str", "no_log": True},
    "promo_code": {"type": "str"},
    "custom_fields": {"type": "dict"},
    "auto_renew": {"type": "bool"},
    "notes": {"type": "str"},
    "power": {"type": "str", "choices": ["running", "stopped"]},
    "rebuild": {"type": "str", "choices": ["replace", "reinstall", "forbid"]},
    "adopt_id": {"type": "str"},
    "order_attempt": {"type": "int"},
}


def main() -> None:
    run_noun("server", OPTIONS, clears={"notes": ""}, required_one_of=[("id", "name")], mutually_exclusive=[("months", "hours")])


if __name__ == "__main__":
    main()
