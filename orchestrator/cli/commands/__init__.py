"""The subcommands of `mrcfabric`, one module per family; each has `register(app)`."""
