"""Episodes in the cache: how they are stored, and how ``open`` and ``align`` find them."""
