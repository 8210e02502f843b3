"""What channels mean: a number, an angle, a part of a quaternion."""
