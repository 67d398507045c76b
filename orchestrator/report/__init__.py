"""The report of a run: plain data, files, and self-contained pages with charts."""
