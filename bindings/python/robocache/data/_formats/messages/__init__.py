"""Conversion of the messages of one topic to columns of numbers."""
