"""What a broker answers when it refuses."""

__all__ = ["BrokerError"]


class BrokerError(Exception):
    """A refusal, by the name that Kafka gives it."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code
