"""The operations of the library, a module each."""
