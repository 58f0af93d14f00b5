"""``python -m freqsgd``."""

from freqsgd.cli import main

main()
