"""Common clocks, reports of rates and gaps, samples that belong together."""
