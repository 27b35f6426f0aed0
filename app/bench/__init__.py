"""`mentee bench`: figures of this machine, each beside the one that is reached for. Ratios in one run, medians of pairs."""
