"""Editing of LeRobot data sets: episodes, features and tasks, as a new data set."""
