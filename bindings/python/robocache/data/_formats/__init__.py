"""The formats, a module or a folder each, and the registry that asks them."""
