"""One fabric over several hosts: which hosts there are, and what of the fabric each of them carries."""
