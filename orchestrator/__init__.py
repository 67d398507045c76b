"""The tool `mrcfabric`: plans, launches, drives, breaks and judges a fabric."""
