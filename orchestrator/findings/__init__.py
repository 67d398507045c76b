"""Findings: what was recorded of a run, measured, judged, compared and reported. Pure, but for the writing of files."""
