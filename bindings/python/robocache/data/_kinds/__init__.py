"""The kinds of channels: a number, an angle, a part of a quaternion."""
