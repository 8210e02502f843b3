"""The C library: contexts, errors, dtypes, memory, version."""
