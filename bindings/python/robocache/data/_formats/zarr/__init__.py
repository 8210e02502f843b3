"""Zarr stores: replay buffers, and the output of ``save``."""
