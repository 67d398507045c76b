"""A fabric as scripts use it: launched here or attached to, given work, watched and measured."""
