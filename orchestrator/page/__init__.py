"""Pages of results: one file each that needs nothing from elsewhere, drawn from plain data. Pure text, no library."""
