"""What peers.py compares RoboCache with, on what, and how it takes the times."""
