"""Every topic as a typed value."""
