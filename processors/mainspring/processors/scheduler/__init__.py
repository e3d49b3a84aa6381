"""The scheduler: the processor of commands, follow-ups and attempts."""
