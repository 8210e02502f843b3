"""Training samples that are cut out of episodes."""
