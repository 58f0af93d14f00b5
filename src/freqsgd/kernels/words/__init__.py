"""Word vectors with negative sampling: the kernel of a block of text, phase by phase."""
