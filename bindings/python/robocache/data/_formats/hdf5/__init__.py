"""HDF5 files of robomimic and ALOHA, read in a separate process."""
