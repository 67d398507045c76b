"""What NICs, switches and the orchestrator share: the wire, the topology, time, and the drivers of the cores."""
