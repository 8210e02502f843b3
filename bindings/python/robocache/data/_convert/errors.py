"""Errors of a conversion."""

from __future__ import annotations


class Unsuitable(ValueError):
    """A recording does not have what the conversion needs, such as a stream or common times."""
