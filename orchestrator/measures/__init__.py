"""What was recorded of a run, what can be measured in it, and whether what was expected held. Pure."""
