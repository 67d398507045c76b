"""The recording of a run, the measures taken of it, and the judgement of expectations. Pure."""
