#!/usr/bin/python
# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: ssh_key_info
short_description: Read the SSH public keys of the account
version_added: 0.1.0
description:
  - Reads the SSH public keys of the account, all of them or those that match every given option.
  - The answer is always a list, which is empty when nothing matches.
author:
  - The pulumi-hosting authors (@pulumi-hosting)
options:
  id:
    description:
      - Id of one key.
    type: str
  name:
    description:
      - Name shown in the account.
    type: str
  fingerprint:
    description:
      - Fingerprint in the C(SHA256:) form, as C(ssh-keygen -l) prints it.
    type: str
extends_documentation_fragment:
  - hosting.cloud.client
  - hosting.cloud.client.info
seealso:
  - module: hosting.cloud.ssh_key
"""

EXAMPLES = r"""
- name: Look for keys
  hosts: localhost
  gather_facts: false
  vars:
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
  tasks:
    - name: Read all keys
      hosting.cloud.ssh_key_info:
      register: all_keys

    - name: Read one key by its fingerprint
      hosting.cloud.ssh_key_info:
        fingerprint: SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU
      register: laptop
"""

RETURN = r"""
ssh_keys:
  description: The keys that match.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Id of the key.
      type: str
      sample: "31"
    mode:
      description: V(live), or V(test) for what was only simulated with a test key.
      type: str
      sample: live
    name:
      description: Name shown in the account.
      type: str
      sample: laptop
    public_key:
      description: The public key line.
      type: str
      sample: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0f… me@laptop
    fingerprint:
      description: Fingerprint in the C(SHA256:) form.
      type: str
      sample: SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU
    type:
      description: Key type.
      type: str
      sample: ssh-ed25519
    created_at:
      description: When it was added, RFC 3339 in UTC.
      type: str
      sample: "2026-11-21T10:00:00Z"
"""

from ansible_collections.hosting.cloud.plugins.module_utils.runner import run_info

OPTIONS = {
    "id": {"type": "str"},
    "name": {"type": "str"},
    "fingerprint": {"type": "str"},
}


def main() -> None:
    run_info("ssh_key", "ssh_keys", OPTIONS, mutually_exclusive=[("id", "name"), ("id", "fingerprint")])


if __name__ == "__main__":
    main()
