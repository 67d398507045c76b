"""Fuzzing of every decoder and of both cores: one function per target, fed with bytes. See `fuzz.targets`."""
