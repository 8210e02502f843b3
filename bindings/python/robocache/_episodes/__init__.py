"""Episodes in memory: tracks, and the meanings of their channels."""
