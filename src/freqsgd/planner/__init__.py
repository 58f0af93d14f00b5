"""Estimate memory, hosts and training time for tables of any size."""
