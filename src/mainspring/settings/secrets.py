"""Values that must not be printed."""

import re
from urllib.parse import urlsplit, urlunsplit

from pydantic import Secret, SecretStr

__all__ = ["HIDDEN", "SecretUrl", "is_secret_option", "reveal"]

HIDDEN = "**********"

# librdkafka's own names for what must stay hidden: passwords, private keys, tokens, client secrets.
_SECRET_OPTION = re.compile(r"password|secret|token|key\.pem|oauthbearer\.config|sasl\.jaas")


class SecretUrl(Secret[str]):
    """A URL whose password is shown as asterisks; `get_secret_value()` gives it in full."""

    def _display(self) -> str:
        parts = urlsplit(self.get_secret_value())
        if parts.password is None:
            return self.get_secret_value()
        user, _, host = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}:{HIDDEN}@{host}"))


def is_secret_option(name: str) -> bool:
    """Whether the value of the librdkafka option `name` must not be printed."""
    return _SECRET_OPTION.search(name) is not None


def reveal(value: object) -> object:
    """The plain value behind a secret, or the value itself; for a library's configuration only, never for output."""
    return value.get_secret_value() if isinstance(value, SecretStr | Secret) else value
