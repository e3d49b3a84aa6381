"""What can stop a projector or a reader of the view.

::

    MainspringError
    └── ProjectorError             trying again cannot help; the text says what does
        ├── TopicAbsentError       there is no topic of events, and has not been for a while
        ├── ViewUrlError           the URL names no database that can hold a view
        ├── ViewAbsentError        there is no view yet, or it cannot be opened
        ├── ViewBusyError          another projector writes it
        ├── ViewMismatchError      it was made by another version or from another topic
        └── ViewPositionError      the log does not go on where it stands
"""

from mainspring.schemas.errors import MainspringError

__all__ = [
    "ProjectorError",
    "TopicAbsentError",
    "ViewAbsentError",
    "ViewBusyError",
    "ViewMismatchError",
    "ViewPositionError",
    "ViewUrlError",
]


class ProjectorError(MainspringError):
    """Root of what the projector and the view's reader raise. Trying again cannot help; the text says what does."""


class TopicAbsentError(ProjectorError):
    """There is no topic of events: not yet, or the settings name another."""


class ViewUrlError(ProjectorError):
    """The URL names no database that can hold a view."""


class ViewAbsentError(ProjectorError):
    """There is no view at that URL yet, or it cannot be opened."""


class ViewBusyError(ProjectorError):
    """Another projector writes this view."""


class ViewMismatchError(ProjectorError):
    """The view was made by another version or from another topic."""


class ViewPositionError(ProjectorError):
    """The log no longer continues where the view stands: records are missing, or the topic was made anew."""
