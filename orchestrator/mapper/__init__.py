"""The Clustermapper: finds bad links with probes that NICs send to themselves, and avoids them with deny lists."""
