"""One description of a policy's inputs and outputs, for training and for the robot."""
