"""Conversion of recordings and data sets to a data set for training."""
