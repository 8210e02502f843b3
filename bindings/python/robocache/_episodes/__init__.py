"""Tracks, the meanings of their channels, and episodes in memory."""
