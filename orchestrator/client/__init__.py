"""How commands, runs and scripts reach the agent of a running fabric: find it, hold a lease, ask it, change things."""
