"""The report of a run: plain data, files, and pages with charts that need nothing from elsewhere."""
