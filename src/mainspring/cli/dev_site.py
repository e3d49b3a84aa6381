"""What `mainspring dev` puts below `.mainspring/`: a view of its own, and the settings that lead to its cluster."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mainspring.cli.context import Globals

__all__ = ["FOLDER", "place"]

FOLDER = ".mainspring"
_USUAL = ":9092"
# What another command must know of this installation; all else is its own business.
_SHARED = ("kafka.bootstrap", "topics", "view.url", "worker.app")


@contextmanager
def place(shared: Globals, app: str, *, own_view: bool, passing: bool) -> Iterator[Path]:
    """Sets view.url to a view of dev's own (with `own_view`) and gives the settings file for other terminals.

    Both go when the body ends if the cluster is a `passing` one, for what they tell of is gone as well.
    """
    bootstrap = str(shared.flags["kafka.bootstrap"])
    port = bootstrap.rpartition(":")[2]
    name = "dev" if bootstrap.endswith(_USUAL) else f"dev-{port}"
    folder = Path.cwd() / FOLDER
    views, config = folder / name, folder / f"{name}.toml"
    folder.mkdir(exist_ok=True)
    if own_view:
        shared.set("view.url", f"sqlite:///{views / 'view.db'}")
    config.write_text(_toml(shared, app), encoding="utf-8")
    try:
        yield config
    finally:
        if passing:
            config.unlink(missing_ok=True)
            shutil.rmtree(views, ignore_errors=True)


def _toml(shared: Globals, app: str) -> str:
    settings = shared.settings()
    found = {".".join(path): value for path, value in settings.values() if value is not None}
    found |= {"view.url": settings.view.url.get_secret_value(), "worker.app": [app]}
    lines = [
        f"{name} = {json.dumps(value, ensure_ascii=False)}"
        for name, value in found.items()
        if name in _SHARED or name.partition(".")[0] in _SHARED
    ]
    return "# Written by `mainspring dev`: leads other commands to its Kafka and its view.\n" + "\n".join(lines) + "\n"
