"""The command line `mrcfabric`."""
