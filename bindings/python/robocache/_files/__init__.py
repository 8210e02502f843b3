"""Atomic writes: a file or folder appears whole, or not at all."""
