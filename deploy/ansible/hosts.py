#!/usr/bin/env python3
"""The hosts of one of our inventories for Ansible, as `ansible-playbook -i deploy/ansible/hosts.py`.

The file is the one that MRCFABRIC_INVENTORY names, hosts.yaml by default. Runs where mrcfabric is installed.
"""

import sys

from orchestrator.hosts.placement.ansible_inventory import main

if __name__ == "__main__":
    sys.exit(main())
