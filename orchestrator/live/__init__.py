"""What people see of a running fabric: snapshots of all nodes, and the event log."""
