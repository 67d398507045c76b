"""The Clustermapper: probes that NICs send to themselves find bad links, and deny lists avoid them."""
