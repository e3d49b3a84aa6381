"""Helpers for tests of users' own jobs."""
