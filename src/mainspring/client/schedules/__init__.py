"""Recurring schedules: `client.schedules`, and what their definitions are made of."""
