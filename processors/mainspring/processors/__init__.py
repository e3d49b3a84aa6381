"""The processors that turn commands and facts into events."""
