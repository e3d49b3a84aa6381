"""The projector: events into a view in SQL."""
