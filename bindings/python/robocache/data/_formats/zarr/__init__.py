"""Zarr stores: replay buffers, and what ``save`` writes."""
