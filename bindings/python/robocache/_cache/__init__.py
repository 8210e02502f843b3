"""The cache on disk: keys, identities of files, and the store."""
