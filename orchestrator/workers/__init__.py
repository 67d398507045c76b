"""Worker processes at the NICs of a fabric: training ranks, streams of messages, and what they report."""
