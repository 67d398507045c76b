"""Random fabrics whose switches route for themselves."""
