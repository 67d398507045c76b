"""What a person sees of a running fabric, look by look: snapshots, the event log, `mrcfabric top`."""
