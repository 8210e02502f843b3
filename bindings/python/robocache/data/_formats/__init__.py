"""The formats, one module or package each, and the registry that detects them."""
