"""Files of one point cloud each."""
