"""Checks of times, values, stored statistics and unread parts."""
