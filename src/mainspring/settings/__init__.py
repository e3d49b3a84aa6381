"""Settings, one class for everything."""
