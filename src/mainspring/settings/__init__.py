"""Settings, one class for everything."""

from mainspring.settings.errors import Problem, SettingsError
from mainspring.settings.model import Settings
from mainspring.settings.secrets import HIDDEN, SecretUrl

__all__ = ["HIDDEN", "Problem", "SecretUrl", "Settings", "SettingsError"]
