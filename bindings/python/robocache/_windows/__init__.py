"""Training samples cut out of episodes."""
