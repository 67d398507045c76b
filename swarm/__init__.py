"""Proof in virtual time: random fabrics, workloads and faults, with invariants checked at every event."""
