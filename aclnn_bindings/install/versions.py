"""Reads which releases are installed from version files; refuses to ask a library or a device.

Files (CANN 8.1.RC1 tree; CANN 8.5 and later): `include/version/cann_version.h`,
`<arch>-linux/ascend_toolkit_install.info`, `version.cfg`, `version.info`,
`share/info/<package>/version.info`; driver and firmware: `<place>/{driver,firmware}/version.info`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .driver import driver_place, misfits, value_of as _key
from .file_queries import is_dir, listed, matching, text as _text

_VERSION: Final = re.compile(r"\d+\.\d+[0-9A-Za-z.\-+]*")
KERNELS: Final = "opp/built-in/op_impl/ai_core/tbe/kernel"
_PARTS: Final = ("lib64", "include", "opp", "runtime", "compiler", "toolkit")
_PACKAGES: Final = ("runtime", "compiler", "opp", "hccl", "toolkit", "opp_kernel")


@dataclass(frozen=True, slots=True)
class Versions:
    """Releases by part, each None when no file names it; `source` is the toolkit's file.

    `kernels` are SoCs with built-in kernel binaries; `packages` the releases that packages state,
    by name; `misfits` what their files say does not
    go together; `catalog` is the signature catalog that the install says it implements (only
    simulators do).
    """

    toolkit: str | None = None
    source: str = ""
    driver: str | None = None
    firmware: str | None = None
    opp: str | None = None
    kernels: tuple[str, ...] = ()
    packages: tuple[tuple[str, str], ...] = ()
    misfits: tuple[str, ...] = ()
    catalog: str | None = None
    simulator: bool = False


def kernels_package(toolkit: str | None, soc: str) -> str:
    """The name of the package of kernel binaries: another one from release 8.5 on (its release
    notes); both where the release is not known."""
    chip = soc.lower().removeprefix("ascend")
    number = re.match(r"(\d+)\.(\d+)", toolkit or "")
    old, new = f"Ascend-cann-kernels-{chip}", f"Ascend-cann-{chip}-ops"
    if number is None:
        return f"{new} (before 8.5: {old})"
    return new if (int(number[1]), int(number[2])) >= (8, 5) else old


def read_versions(root: Path, system: Path | None = None) -> Versions:
    """Releases of the toolkit at `root`, and of driver and firmware below `system`."""
    toolkit, source = _toolkit(root)
    if _key(root / "version.info", "kind") == "simulator":
        catalog = _key(root / "version.info", "catalog")
        return Versions(toolkit=toolkit, source=source, catalog=catalog, simulator=True)
    place = system or driver_place()
    return Versions(
        toolkit=toolkit,
        source=source,
        driver=_key(place / "driver/version.info", "Version"),
        firmware=_key(place / "firmware/version.info", "Version"),
        opp=_opp(root),
        kernels=tuple(_kernels(root)),
        packages=tuple(_packages(root)),
        misfits=tuple(misfits(root, place)),
    )


def _toolkit(root: Path) -> tuple[str | None, str]:
    for path, pattern in _toolkit_files(root):
        text = _text(path)
        if text and (match := re.search(pattern, text, re.MULTILINE)):
            return match.group(1).strip(), str(path)
    for name in (root.name, os.path.basename(os.path.realpath(root))):
        if match := _VERSION.search(name.removeprefix("cann-")):
            return match.group(0), f"folder name {name}"
    return None, ""


def _toolkit_files(root: Path) -> Iterator[tuple[Path, str]]:
    quoted = r'^\s*#\s*define\s+CANN_VERSION_STR\s+"([^"]+)"'
    yield root / "include/version/cann_version.h", quoted
    for path in matching(root, "*-linux/include/version/cann_version.h"):
        yield path, quoted
    for path in matching(root, "*-linux/ascend_*_install.info"):
        yield path, r"^version=(\S+)"
    yield root / "version.cfg", r"_running_version=\[[^:\]]*:([^\]]+)\]"
    for name in ("version.info", "runtime/version.info", "compiler/version.info"):
        yield root / name, r"^version_dir=(\S+)"
    for package in ("runtime", "opp", "ops_base", "toolkit", "*"):
        for path in matching(root, f"share/info/{package}/version.info"):
            yield path, r"^(?:version_dir|Version)=(\S+)"
    yield root / "version.info", r"^[Vv]ersion=(\S+)"


def _opp(root: Path) -> str | None:
    for name in ("opp/version.info", "share/info/opp/version.info", "opp/scene.info"):
        if version := _key(root / name, "Version"):
            return version
    return None


def _kernels(root: Path) -> list[str]:
    """SoCs for which built-in kernel binaries are installed, such as `ascend910b`."""
    folder = root / KERNELS
    return [path.name for path in listed(folder, "ascend*") if is_dir(path)]


def leads(root: Path) -> tuple[tuple[str, str], ...]:
    """The release into whose folder each part of `root` leads, such as ("lib64", "8.1.RC1"), where
    links lead into folders of several; () where all belong together."""
    reals = {part: Path(os.path.realpath(root / part)) for part in _PARTS if is_dir(root / part)}
    if len(reals) < 2:
        return ()
    shared = len(Path(os.path.commonpath(reals.values())).parts)
    releases = {
        part: match.group(0)
        for part, real in reals.items()
        for name in real.parts[shared:][:1]
        if (match := _VERSION.search(name))
    }
    return tuple(releases.items()) if len(set(releases.values())) > 1 else ()


def _packages(root: Path) -> Iterator[tuple[str, str]]:
    """The release (`version_dir`) of each package that states one."""
    for name in _PACKAGES:
        for path in (root / name / "version.info", root / "share/info" / name / "version.info"):
            if release := _key(path, "version_dir"):
                yield name, release
                break
