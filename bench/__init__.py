"""What mrcfabric reaches on this machine: `python -m bench`. Every figure is measured in the run that prints it."""
