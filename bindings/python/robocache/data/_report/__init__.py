"""The report of a recording: facts, plots and a page of HTML."""
