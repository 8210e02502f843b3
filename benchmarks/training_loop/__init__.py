"""What training.py trains on, the ways to align it, and the model."""
