"""What runs over the fabric: rank processes, collectives, transfers and measurements."""
