"""What a person sees of a running fabric: snapshots of all nodes, and the event log."""
