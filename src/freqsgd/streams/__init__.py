"""Examples of consecutive days for one-pass training."""
