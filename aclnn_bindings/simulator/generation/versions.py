"""Owns the version files by which an install is recognised, and the mark that it is simulated."""

from __future__ import annotations

from pathlib import Path

from .text import C_BANNER, guard, write

# What the simulated interface is: the release that the catalog was read from.
CANN_VERSION = "9.1.0"
# Packages that aclsysGetVersionStr answers for: share/info/<package>/version.info.
PACKAGES = (
    "runtime", "opp", "toolkit", "compiler", "hccl", "opp_kernel",
    "ops_math", "ops_nn", "ops_cv", "ops_transformer", "ops_legacy",
)  # fmt: skip

# Folders by which clients recognise a toolkit; each has its version file, as in an install.
PARTS = ("runtime", "compiler", "opp")


def write_files(output: Path, catalog: str) -> None:
    """Write version.info (kind=simulator), cann_version.h and the per-package version files."""
    info = f"Version={CANN_VERSION}\nversion_dir={CANN_VERSION}\n"
    write(output / "version.info", f"{info}kind=simulator\ncatalog={catalog}\n")
    for package in PACKAGES:
        write(output / "share" / "info" / package / "version.info", info)
    for part in PARTS:
        write(output / "parts" / part / "version.info", info)
    header = "version/cann_version.h"
    write(
        output / "include" / header,
        f"{C_BANNER}#ifndef {guard(header)}\n#define {guard(header)}\n\n"
        f'#define CANN_VERSION_STR "{CANN_VERSION}"\n'
        f"\n#endif  /* {guard(header)} */\n",
    )
