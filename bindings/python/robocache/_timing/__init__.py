"""Common clocks, reports of rates and gaps, and pairs of samples of two sensors."""
