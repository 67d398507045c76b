"""UET (UEC 1.0): contexts that open with the first packet, delivery in any order, entropies that switches hash."""
