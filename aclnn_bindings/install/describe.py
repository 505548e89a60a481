"""Owns the description of one CANN-like install on disk; refuses to load it or to look elsewhere.

Layouts (installer manifests and set_env.sh of CANN 8.1.RC1; package lists of CANN 8.5 and later):
`<root>/{include,lib64}`, `<root>/<arch>-linux/{include,lib64}`, and for operators also
`<root>/opp/built-in/op_impl/ai_core/tbe/op_api/{include,lib/linux/<arch>}`, whose links into lib64
an image may lack.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from .driver import driver_place
from .file_queries import exists, is_dir, listed, matching
from .vendors import Vendor, vendors
from .versions import Versions, read_versions

Kind = Literal["cann", "simulator"]
Role = Literal["custom", "split", "opapi", "legacy", "core", "other"]

OP_API: Final = "opp/built-in/op_impl/ai_core/tbe/op_api"
# nnopbase's fixed order of the split libraries (CANN 8.5 and later), then the order in which
# op-plugin falls back: libopapi.so (deprecated beside split ones), then those of CANN <= 8.3.
SPLIT: Final = ("math", "nn", "cv", "transformer", "oam", "legacy", "ras")
LEGACY: Final = ("ops_infer", "ops_train", "math", "sparse", "fft", "rand")
CORE: Final = ("libnnopbase.so", "libascendcl.so", "libacl_rt.so")
RUNTIME: Final = ("libascendcl.so", "libacl_rt.so")
_OTHERS: Final = (
    "libacl_*.so",
    "libmsprofiler.so",
    "libascend_dump.so",
    "libhccl.so",
    "libhcomm.so",
)


@dataclass(frozen=True, slots=True)
class LibraryFile:
    """One library file and why it is there; `vendor` names a custom operator package."""

    path: Path
    role: Role
    vendor: str = ""

    @property
    def name(self) -> str:
        return self.path.name


@dataclass(frozen=True, slots=True)
class Install:
    """One install: `libraries` are in the order in which a symbol is looked for."""

    root: Path
    found_via: str
    kind: Kind
    versions: Versions
    include_dirs: tuple[Path, ...]
    libraries: tuple[LibraryFile, ...]
    vendors: tuple[Vendor, ...] = ()

    @property
    def version(self) -> str | None:
        """The toolkit's release, such as `8.1.RC1`, or None when no file names it."""
        return self.versions.toolkit

    @property
    def layout(self) -> str:
        """`single`, `split`, `legacy`, `mixed` (single beside split) or `none`."""
        roles = {library.role for library in self.libraries}
        if {"opapi", "split"} <= roles:
            return "mixed"
        named = {"opapi": "single", "split": "split", "legacy": "legacy"}
        return next((text for role, text in named.items() if role in roles), "none")

    def is_searched(self, library: LibraryFile) -> bool:
        """Whether a caller looks for functions there; tools and media stay out of the process."""
        if library.role == "legacy":
            return self.layout == "legacy"
        return library.role != "other"

    def library(self, name: str) -> LibraryFile | None:
        """The library called `name`, or None."""
        return next((lib for lib in self.libraries if lib.name == name), None)

    def dependency(self, name: str) -> Path | None:
        """The file called `name` in `dependency_dirs`, or None."""
        if not name.startswith("lib"):
            return None
        places = (folder / name for folder in self.dependency_dirs())
        return next((path for path in places if exists(path)), None)

    def dependency_dirs(self) -> list[Path]:
        """Folders that set_env.sh and the driver's setup put on the loader's path."""
        if self.kind == "simulator":
            return library_dirs(self.root)
        driver = driver_place() / "driver" / "lib64"
        return [*library_dirs(self.root), driver / "driver", driver / "common", driver]


def arch() -> str:
    """The machine's architecture as CANN spells it in folder names."""
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(platform.machine(), platform.machine())


def describe(
    root: Path, found_via: str, environ: Mapping[str, str], headers: Path | None = None
) -> Install | None:
    """The install at `root`, or None when it holds neither headers nor libraries of CANN."""
    includes = (headers,) if headers else tuple(_include_dirs(root))
    versions = read_versions(root)
    libraries = tuple(_libraries(root, versions.simulator))
    if not includes and not libraries:
        return None
    packages = vendors(root, environ)
    custom = tuple(
        LibraryFile(v.library, "custom", v.name) for v in packages if v.library and not v.shadowed
    )
    return Install(
        root=root,
        found_via=found_via,
        kind="simulator" if versions.simulator else "cann",
        versions=versions,
        include_dirs=includes + tuple(v.include for v in packages if v.include),
        libraries=custom + libraries,
        vendors=packages,
    )


def _include_dirs(root: Path) -> Iterator[Path]:
    """Folders below which `acl/`, `aclnn/` or `aclnnop/` stand; links to one seen are dropped."""
    seen: set[Path] = set()
    here = [root / "include", *_arch_dirs(root, "include"), root / OP_API / "include", root]
    if not any(is_dir(folder / "acl") for folder in here):
        here += [root / part / "include" for part in ("runtime", "compiler", "fwkacllib")]
    for folder in here:
        if any(is_dir(folder / name) for name in ("acl", "aclnn", "aclnnop")):
            covered = {
                Path(os.path.realpath(folder / name)) for name in ("acl", "aclnn", "aclnnop")
            }
            new = {path for path in covered if is_dir(path)} - seen
            seen |= new
            if new:
                yield folder


def _arch_dirs(root: Path, leaf: str) -> list[Path]:
    """`<root>/<arch>-linux/<leaf>`, this machine's first."""
    return sorted(matching(root, f"*-linux/{leaf}"), key=lambda p: (arch() not in p.parts[-2], p))


def library_dirs(root: Path) -> list[Path]:
    """Folders of `root` that may hold libraries, in search order."""
    places = [root / "lib64", *_arch_dirs(root, "lib64")]
    places += [root / "runtime" / "lib64", root / "compiler" / "lib64"]
    places += sorted(matching(root, f"{OP_API}/lib/linux/*"), key=lambda p: (p.name != arch(), p))
    if listed(root, "libascendcl.so*") or listed(root, "libopapi*.so"):
        places.append(root)
    return [place for place in dict.fromkeys(places) if is_dir(place)]


def _libraries(root: Path, simulator: bool) -> Iterator[LibraryFile]:
    """Libraries of `root` in symbol search order, each file name once.

    The simulator's split libraries are filters, whose names lead to its libopapi.so.
    """
    split: Role = "other" if simulator else "split"
    folders = library_dirs(root)
    seen: set[str] = set()

    def take(pattern: str, role: Role) -> Iterator[LibraryFile]:
        for folder in folders:
            for path in listed(folder, pattern):
                if path.name not in seen and not (is_dir(path) and not path.is_symlink()):
                    seen.add(path.name)
                    yield LibraryFile(path, role)

    for part in SPLIT:
        yield from take(f"libopapi_{part}.so", split)
    yield from take("libopapi_*.so", split)
    yield from take("libopapi.so", "opapi")
    for part in LEGACY:
        yield from take(f"libaclnn_{part}.so", "legacy")
    for name in CORE:
        yield from take(name, "core")
    for pattern in _OTHERS:
        yield from take(pattern, "other")
