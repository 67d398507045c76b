"""Acceptance of the systems: each row sets a closed form or a published figure beside what the cores do.

`python -m studies.systems` measures and prints, `make systems` writes docs/SYSTEMS.md.
"""
