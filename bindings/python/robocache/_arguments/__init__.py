"""Conversion of a caller's arguments: arrays, times, options, and the call itself."""
