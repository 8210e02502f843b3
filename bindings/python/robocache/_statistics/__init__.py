"""Exact statistics and normalization."""
