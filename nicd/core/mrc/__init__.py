"""The MRC transport of a NIC: EVs, windows, selective acknowledgements and what each QP does with them."""
