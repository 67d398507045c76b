"""Tools of maintainers, not of users: they write files that ship, and are not part of the wheel."""
