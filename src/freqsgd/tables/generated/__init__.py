"""Clicks drawn from known models: a table, and a log of any length."""
