"""LeRobot data sets, read and written."""
