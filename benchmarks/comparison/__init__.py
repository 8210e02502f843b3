"""The peers and cases that peers.py compares with RoboCache, and its timing."""
