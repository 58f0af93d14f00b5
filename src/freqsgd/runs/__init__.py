"""What runs of every kind share: the loop, checkpoints, resuming, documents."""
