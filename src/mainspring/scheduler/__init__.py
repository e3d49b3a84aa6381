"""The JobScheduler facade."""
