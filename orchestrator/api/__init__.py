"""A fabric for scripts: launch one or attach to one, give it work, watch it and measure it."""
