"""NumPy files, and named arrays, which npz and Zarr share."""
