"""Programs over a fabric of their own: the demonstration, measurements of bandwidth and latency, a file transfer."""
