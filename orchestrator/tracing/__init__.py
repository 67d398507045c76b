"""Where did packet N go: statements of many nodes made into one story per packet."""
