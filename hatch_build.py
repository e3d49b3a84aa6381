"""Builds the codec in C with the package, and leaves it out where there is no compiler: it is there for speed alone."""

import logging
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension

NAME = "mainspring.schemas._native"
SOURCES = Path("schemas/native")
PACKAGE = Path("schemas")


class NativeCodec(BuildHookInterface[Any]):
    """Compiles `schemas/native` in place, for installations from a checkout, too, and adds it to a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by the build of a wheel, and by `pip install --editable` (`version` is "editable" then)."""
        try:
            built = self._compile()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a compiler does, the package is whole without
            logging.getLogger(__name__).warning("the codec in C was not built, the one in Python is used: %s", error)
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append(str(built.relative_to(self.root)))

    def clean(self, versions: list[str]) -> None:
        """Called by `hatch clean`."""
        for built in (Path(self.root) / PACKAGE / "mainspring/schemas").glob("_native.*.so"):
            built.unlink()

    def _compile(self) -> Path:
        root = Path(self.root)
        extension = Extension(
            NAME,
            sources=sorted(str(each) for each in (root / SOURCES).glob("*.c")),
            depends=[str(root / SOURCES / "shape.h")],
            extra_compile_args=[] if sys.platform == "win32" else ["-O2", "-Wall", "-Wextra"],
        )
        command: Any = Distribution({"ext_modules": [extension]}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(root / PACKAGE), str(root / "build" / "native")
        command.ensure_finalized()
        command.run()
        return Path(command.get_ext_fullpath(NAME))
