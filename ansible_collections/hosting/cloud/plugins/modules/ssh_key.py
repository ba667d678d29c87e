#!/usr/bin/python
# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: ssh_key
short_description: Add and remove an SSH public key of the account
version_added: 0.1.0
description:
  - Makes sure that an SSH public key is on the account, under the wished name, or that it is not.
  - A key is recognised by O(id), else by its O(public_key) (the key itself, not the comment), else by its O(name).
  - The API cannot change a key. Another O(name) or O(public_key) therefore removes the old entry and adds a new one, which has a new id.
    Servers that were ordered with it keep it.
author:
  - The pulumi-hosting authors (@pulumi-hosting)
options:
  id:
    description:
      - Id of the key on the account.
    type: str
  name:
    description:
      - Name shown in the account, 1 to 255 characters. Needed to add a key.
    type: str
  public_key:
    description:
      - One OpenSSH public key line, C(type base64 comment). Needed to add a key. A changed comment is no difference.
    type: str
extends_documentation_fragment:
  - hosting.cloud.client
  - hosting.cloud.client.noun
seealso:
  - module: hosting.cloud.ssh_key_info
"""

EXAMPLES = r"""
- name: Keys of the account
  hosts: localhost
  gather_facts: false
  vars:
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
  tasks:
    - name: Add a key
      hosting.cloud.ssh_key:
        name: laptop
        public_key: "{{ lookup('ansible.builtin.file', '~/.ssh/id_ed25519.pub') }}"
      register: laptop

    - name: Give the same key another name
      hosting.cloud.ssh_key:
        name: old laptop
        public_key: "{{ lookup('ansible.builtin.file', '~/.ssh/id_ed25519.pub') }}"

    - name: Remove a key by its name
      hosting.cloud.ssh_key:
        name: old laptop
        state: absent
"""

RETURN = r"""
ssh_key:
  description: The key as it is after the task, or as it would be in check mode. Null with O(state=absent).
  returned: success
  type: dict
  contains:
    id:
      description: Id of the key, null in check mode as long as there is none.
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
      description: The public key line, as declared where the account holds the same key.
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

from ansible_collections.hosting.cloud.plugins.module_utils.runner import run_noun

OPTIONS = {
    "id": {"type": "str"},
    "name": {"type": "str"},
    "public_key": {"type": "str", "no_log": False},
}


def main() -> None:
    run_noun("ssh_key", OPTIONS, required_one_of=[("id", "name", "public_key")])


if __name__ == "__main__":
    main()
