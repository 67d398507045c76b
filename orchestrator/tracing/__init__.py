"""Follows packets through the fabric: joins what many nodes state into one journey for each packet."""
