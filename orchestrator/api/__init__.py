"""The verbs of scripts: a fabric as a Python object, launched here or running elsewhere on this host."""
