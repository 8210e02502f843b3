"""The data of training.py, the ways to align it, and the model."""
