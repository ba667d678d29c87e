#!/usr/bin/python
# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: server_info
short_description: Read servers
version_added: 0.1.0
description:
  - Reads the servers of the account, all of them or those that match every given option.
  - The answer is always a list, which is empty when nothing matches.
author:
  - The pulumi-hosting authors (@pulumi-hosting)
options:
  id:
    description:
      - Id of one server. This also reads what its deletion would credit now.
    type: str
  name:
    description:
      - Host name. Compared by this module, after reading the whole list.
    type: str
  status:
    description:
      - Status, compared by the service.
    type: str
    choices: [active, stopped, suspended, pending_cancel, cancelled, terminated]
  ip:
    description:
      - An address of the server, compared by the service.
    type: str
extends_documentation_fragment:
  - hosting.cloud.client
  - hosting.cloud.client.info
seealso:
  - module: hosting.cloud.server
"""

EXAMPLES = r"""
- name: Show the names of all servers
  hosts: localhost
  gather_facts: false
  vars:
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
  tasks:
    - name: Read all servers
      hosting.cloud.server_info:
      register: all_servers

    - name: Show their names
      ansible.builtin.debug:
        msg: "{{ all_servers.servers | map(attribute='name') }}"

    - name: Read one server by its name
      hosting.cloud.server_info:
        name: web-1
      register: web

    - name: Read the servers that are stopped
      hosting.cloud.server_info:
        status: stopped
      register: stopped
"""

RETURN = r"""
servers:
  description: The servers that match, newest first.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Id of the server.
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
      description: V(active), V(stopped), V(suspended), V(pending_cancel), V(cancelled) or V(terminated).
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
      description: Invoice of the order. Null when only read.
      type: str
      sample: "801"
    charged:
      description: What the order cost, a decimal number as text. Null when only read.
      type: str
      sample: "5.00"
    ssh_key_ids:
      description: Ids of the SSH keys it was ordered with. Null when only read, since the service does not show them.
      type: list
      elements: str
      sample: ["31"]
"""

from ansible_collections.hosting.cloud.plugins.module_utils.runner import run_info

OPTIONS = {
    "id": {"type": "str"},
    "name": {"type": "str"},
    "status": {"type": "str", "choices": ["active", "stopped", "suspended", "pending_cancel", "cancelled", "terminated"]},
    "ip": {"type": "str"},
}


def main() -> None:
    run_info("server", "servers", OPTIONS, mutually_exclusive=[("id", "name"), ("id", "status"), ("id", "ip")])


if __name__ == "__main__":
    main()
