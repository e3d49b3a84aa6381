"""The life of a schedule: what is decided about it, and how its state follows from the events."""
