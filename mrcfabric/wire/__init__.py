"""The MRC and SRv6 wire formats: one module per header family, parse and emit; pure functions on bytes."""
