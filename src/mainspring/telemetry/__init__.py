"""Metrics, health and structured logs."""
