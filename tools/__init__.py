"""What maintainers run and users never do: it writes files that ship, and is not part of the wheel."""
