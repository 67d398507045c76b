"""Computes from a topology, before anything starts: figures, state, and limits below line rate. Pure."""
