"""Answers "which install" and "what does it declare"; refuses to fall back in silence.

An environment variable that names an unusable install is an error, not a reason to take the next
one; the simulator is chosen only when asked for or when nothing else was named or found.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ..errors import BindingError
from ..interface import catalog, headers
from ..interface.signature import Declarations
from .describe import Install
from .search import ENVIRONMENT, Step, bundled_simulator, search
from .vendors import Vendor

__all__ = [
    "DeclarationsUnknownError", "Install", "InstallNotFoundError", "catalog_version",
    "declarations", "declarations_with", "find_install", "find_installs",
]  # fmt: skip


class InstallNotFoundError(BindingError, FileNotFoundError):
    """No usable install at the place that was named, or anywhere."""


class DeclarationsUnknownError(BindingError, LookupError):
    """An install has no headers and no catalog of its version, so its functions are not called."""


def find_installs(
    home: str | Path | None = None, environ: Mapping[str, str] | None = None
) -> list[Install]:
    """Every install on this machine, in the order in which `find_install` considers them."""
    steps = search(os.environ if environ is None else environ, Path(home) if home else None)
    return [step.install for step in steps if step.install is not None]


def find_install(
    home: str | Path | None = None,
    simulator: bool = False,
    environ: Mapping[str, str] | None = None,
) -> Install:
    """The install to use: `home`, else the bundled simulator if asked for, else the first found.

    InstallNotFoundError when `home`, or a variable that is set, names no install with libraries.
    """
    environ = os.environ if environ is None else environ
    if simulator and home is None:
        root = bundled_simulator()
        if root is None:
            raise InstallNotFoundError(
                "bundled simulator: it was not built; install the package with a C++ compiler"
            )
        home = root
    steps = search(environ, Path(home) if home else None)
    return choose(steps, explicit=home is not None)


def choose(steps: tuple[Step, ...], explicit: bool = False) -> Install:
    """The first step with libraries; named places are believed, and so refused when empty."""
    for step in steps:
        named = (explicit and step.via == "argument") or step.via in ENVIRONMENT
        if step.install is not None and step.install.libraries:
            if explicit and step.via != "argument":
                break
            return step.install
        if named and step.verdict not in ("unset", "duplicate"):
            detail = step.detail or f"{step.path} has headers but no libraries"
            raise InstallNotFoundError(f"{_name(step)}: {detail}; {_remedy(step)}")
    raise InstallNotFoundError(
        "no CANN install and no simulator were found; set ASCEND_HOME_PATH by sourcing the "
        "toolkit's set_env.sh, or see `mindtorch-npu probe`"
    )


def _name(step: Step) -> str:
    return "home" if step.via == "argument" else f"{step.via}={step.path}"


def _remedy(step: Step) -> str:
    if step.via == "argument":
        return "give a toolkit's root, such as /usr/local/Ascend/ascend-toolkit/latest"
    return "source the toolkit's set_env.sh, or unset the variable to look elsewhere"


def catalog_version(install: Install) -> str | None:
    """The catalog that describes exactly this install, or None when there is no such one."""
    return catalog.version_of(install.versions.catalog or install.version)


def declarations_with(install: Install, vendor: Vendor) -> Declarations:
    """What a custom operator package declares, before what `install` does."""
    folders = [folder for folder in install.include_dirs if folder != vendor.include]
    return headers.load([*filter(None, [vendor.include]), *folders])


def declarations(install: Install) -> Declarations:
    """What `install` declares: its headers, else (or if empty) the catalog of its exact version.

    DeclarationsUnknownError when it has neither, since calling by guess corrupts memory.
    """
    if install.include_dirs:
        parsed = headers.load(install.include_dirs)
        if parsed.functions:
            return parsed
    version = catalog_version(install)
    if version is None:
        raise DeclarationsUnknownError(
            f"install at {install.root}: it has no headers, and there is no catalog of version "
            f"{install.version or 'unknown'} (known: {', '.join(catalog.versions())}); install "
            "the toolkit's development package or give --headers"
        )
    return catalog.load(version)
