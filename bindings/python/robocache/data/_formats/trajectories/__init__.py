"""Trajectories of poses, and recordings of motion capture and satellite navigation."""
