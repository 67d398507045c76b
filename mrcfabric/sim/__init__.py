"""The fabric in virtual time: any graph of cores, deterministic."""
