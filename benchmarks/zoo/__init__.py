"""Ten models with embedding tables, trained by eight optimizers: `python -m benchmarks.zoo`."""
