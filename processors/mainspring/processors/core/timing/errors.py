"""What is wrong with a rule of time."""

__all__ = ["CronError"]


class CronError(ValueError):
    """An expression that is none, or one that never matches. The text names its field and says what would be right."""
