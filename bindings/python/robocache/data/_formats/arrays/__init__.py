"""NumPy files, and the named arrays that npz and Zarr files store."""
