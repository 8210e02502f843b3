"""The operations of the library, one module each."""
