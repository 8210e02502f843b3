"""Messages of one topic become columns of numbers."""
