"""ROS 1 bags, ROS 2 bags and MCAP: files of messages by topic."""
