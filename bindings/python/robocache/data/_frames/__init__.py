"""Frames of cameras: where they come from, how they are stored, and how batches read them."""
