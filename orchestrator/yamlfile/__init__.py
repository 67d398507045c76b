"""YAML files whose mistakes are reported by line: reading, typed decoding, spelled figures."""
