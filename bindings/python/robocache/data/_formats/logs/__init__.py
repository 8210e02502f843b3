"""Logs of flight controllers and phones, and JSON lines."""
