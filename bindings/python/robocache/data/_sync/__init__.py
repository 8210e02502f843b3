"""Offset and drift between two clocks."""
