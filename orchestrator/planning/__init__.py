"""What a topology amounts to before anything is started: figures, state, and limits below line rate. Pure."""
