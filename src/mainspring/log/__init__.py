"""Replay, follow and verify the log."""
