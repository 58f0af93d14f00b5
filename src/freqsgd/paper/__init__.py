"""Every figure and table of the paper, measured here and held against what the paper says."""
