"""The PEP 517 backend: scikit-build-core, after one check that a C++ compiler and Python.h exist.

Without the check a machine with no compiler sees a page of CMake output first.
"""

import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

from scikit_build_core import build as _backend
from scikit_build_core.build import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_COMPILERS = {"CC": ("cc", "gcc", "clang"), "CXX": ("c++", "g++", "clang++")}


def _compiler_present(variable: str) -> bool:
    named = shlex.split(os.environ.get(variable, ""))
    candidates = named[:1] or _COMPILERS[variable]
    return any(shutil.which(name) for name in candidates)


def _require_toolchain() -> None:
    missing = [variable for variable in _COMPILERS if not _compiler_present(variable)]
    if missing:
        raise SystemExit(
            "mindtorch-npu builds its simulator and launch extension from C and C++17, and found "
            f"no compiler for {' and '.join(missing)} (looked for "
            f"{', '.join(name for v in missing for name in _COMPILERS[v])} on PATH).\n"
            "Install one and run pip again, for example: apt-get install g++"
        )
    if sysconfig.get_config_var("Py_GIL_DISABLED") and sys.version_info < (3, 14):
        raise SystemExit(
            "mindtorch-npu calls C through cffi, which does not support the free-threaded CPython "
            "3.13.\nUse 3.13 with its GIL (python3.13), or 3.14t."
        )
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.is_file():
        raise SystemExit(
            f"mindtorch-npu builds an extension module and found no {header}.\n"
            "Install the development files of this Python and run pip again, "
            "for example: apt-get install python3-dev"
        )


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, list[str] | str] | None = None,
    metadata_directory: str | None = None,
) -> str:
    _require_toolchain()
    return _backend.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str,
    config_settings: dict[str, list[str] | str] | None = None,
    metadata_directory: str | None = None,
) -> str:
    _require_toolchain()
    return _backend.build_editable(wheel_directory, config_settings, metadata_directory)
