"""Makes an install with layers of an install: its shims in its own layout; runs nothing.

The made root has the folders of the real one. Library folders are real folders in which each CANN
library is a shim and everything else a link; all the rest are links. So programs that go by
ASCEND_HOME_PATH, by the loader's path or by name find the shims, and shims name the real libraries
by absolute path. Made once per state of an install, in the user's cache; looked over before each
use, and made again where anything is not as it was made.
"""

from __future__ import annotations

import mmap
import os
import platform
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

from ..errors import BindingError
from ..install.describe import Install, arch
from ..install.driver import driver_place
from ..install.file_queries import loader_path
from ..install.library import DeclarationsUnknownError, declarations
from ..install.segments import read_segments
from ..install.vendors import VARIABLE
from ..interface.headers.cache import cache_folder
from ..interface.signature import Declarations
from ..interface.user_dir import (
    closed_to_others,
    is_changed_by_others,
    of_others,
    temporary,
    usable,
)
from . import image, sealed, table
from .table import InterposedFunction

_FUNCTION_KINDS: Final = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
_GLOBAL_OR_WEAK: Final = (1, 2)
_SYMBOL: Final = struct.Struct("<IBBHQQ")
CORE: Final = "libaclnn_layers.so"
# Where the superuser's layers lie: programs that go on as somebody else load them too.
_FOR_ALL: Final = Path("/var/cache/mindtorch-npu")
# What the loader's path cannot spell (ld.so(8): separators, and the start of a token).
_UNSPEAKABLE: Final = frozenset(":;$\n")


class LayersUnavailableError(BindingError):
    """Layers cannot be made here: no core for this machine, or a library that cannot be read."""


@dataclass(frozen=True, slots=True)
class Interposed:
    """An install with layers: its root, the functions of all shims, and the real install."""

    root: Path
    table: Path
    core: Path
    real: Install
    functions: tuple[InterposedFunction, ...]
    declared: Declarations | None

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Variables that lead a program here, whatever led it to the real install before."""
        variables = leading(self.real, environ, self._moved)
        # After ours the real folders: who may not enter ours runs as without layers.
        real = [str(folder) for folder in self.real.dependency_dirs()]
        paths = [variables["LD_LIBRARY_PATH"], *real]
        return variables | {"LD_LIBRARY_PATH": os.pathsep.join(paths)}

    def shims(self) -> dict[Path, Path]:
        """Library of the real install → the shim that stands before it."""
        return {lib.path: self._moved(lib.path) for lib in self.real.libraries
                if lib.path.exists()}  # fmt: skip

    def _moved(self, place: Path) -> Path:
        """Where a folder of the real install, or of a custom package, is here; any other stays
        where it is."""
        mirrors = {self.real.root: self.root, **_packages(self.table.parent, self.real)}
        for root, mirror in mirrors.items():
            if place.is_relative_to(root):
                return mirror / place.relative_to(root)
        return place

    def internal(self) -> list[str]:
        """Folders whose code is the install's own, so that its calls are not the program's."""
        folders = {self.real.root, Path(os.path.realpath(self.real.root)), driver_place()}
        folders |= {Path(os.path.realpath(lib.path)).parent for lib in self.real.libraries}
        return sorted(str(folder) for folder in folders)


def leading(
    install: Install, environ: Mapping[str, str], moved: Callable[[Path], Path] = Path
) -> dict[str, str]:
    """Variables that lead a program to an install, or to where its folders were `moved`."""
    dirs = [str(moved(folder)) for folder in install.dependency_dirs()]
    root = str(moved(install.root))
    before = [str(moved(folder)) for folder in loader_path(environ)]
    named = {
        "ASCEND_HOME_PATH": root,
        "ASCEND_TOOLKIT_HOME": root,
        "LD_LIBRARY_PATH": os.pathsep.join([*dirs, *before]),
    }
    if packages := environ.get(VARIABLE):
        named[VARIABLE] = ":".join(str(moved(Path(e))) for e in packages.split(":") if e)
    if environ.get("MINDTORCH_CANN_HOME"):
        named["MINDTORCH_CANN_HOME"] = root
    opp = environ.get("ASCEND_OPP_PATH")
    if opp or (install.root / "opp").is_dir():
        named["ASCEND_OPP_PATH"] = str(moved(Path(opp or install.root / "opp")))
    return named


def core_library() -> Path:
    """The interceptor's core; LayersUnavailableError when it was not built."""
    import aclnn_bindings

    for place in aclnn_bindings.__path__:
        path = Path(place) / "layers" / CORE
        if path.is_file():
            return path
    raise LayersUnavailableError(
        f"layers: {CORE} was not built; install the package with a C++ compiler"
    )


def interpose(install: Install) -> Interposed:
    """The install with layers for `install`, made now or found in the cache."""
    machine = arch()
    if machine not in image.MACHINES or platform.system() != "Linux":
        raise LayersUnavailableError(
            f"layers: made for Linux on x86_64 and aarch64; this is {platform.system()} on "
            f"{platform.machine()}"
        )
    libraries = _libraries(install)
    exported = {path: exports(path) for path in libraries.values()}
    declared = _declared(install)
    rows = table.functions((n for e in exported.values() for n in e.names), declared)
    key = _key(install, libraries)
    problems: list[str] = []
    for place in _places(install, problems):
        folder = place / key
        if of_others(folder):  # programs load what lies there
            folder = temporary() / "layers" / key
        try:
            if not sealed.is_whole(folder):
                _make(folder, install, libraries, exported, rows, declared)
            if sealed.is_whole(folder):
                core, root = folder / "core" / CORE, _root(folder, install)
                return Interposed(root, folder / "table", core, install, tuple(rows), declared)
            problems.append(f"{folder} is not as it was written a moment ago")
        except OSError as error:
            problems.append(f"{folder}: {error.strerror}")
    raise LayersUnavailableError(
        f"layers: no folder for them: {'; '.join(problems)}; let MINDTORCH_CACHE_DIR name "
        "another that can be written, has room, and whose path LD_LIBRARY_PATH can hold"
    )


def _places(install: Install, problems: list[str]) -> Iterator[Path]:
    """Folders for layers that this user can write, and the loader's path can spell; why others
    are not is added to `problems`."""
    for place in _candidates():
        if _UNSPEAKABLE & set(f"{place}/{install.root.name}"):
            problems.append(f"{place} has a colon, a semicolon, a dollar or a new line in its name")
        elif is_changed_by_others(place) or not usable(place):
            problems.append(f"{place} cannot be written, or others can change it")
        else:
            yield place


def _candidates() -> Iterator[Path]:
    folder = os.environ.get("MINDTORCH_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    if os.geteuid() == 0 and not folder:
        yield _FOR_ALL / "layers"
    yield Path(cache_folder()) / "layers"
    yield temporary() / "layers"


def _root(folder: Path, install: Install) -> Path:
    """Where the mirrored install lies: under its own folder's name, by which some clients find it
    (MindSpore looks for `latest` or `cann` in the path of libascendcl)."""
    return folder / "root" / install.root.name


def _packages(folder: Path, install: Install) -> dict[Path, Path]:
    """Custom packages outside the install's root: where each is → where it is mirrored."""
    roots = dict.fromkeys(vendor.library.parents[2] for vendor in install.vendors if vendor.library)
    outside = [root for root in roots if not root.is_relative_to(install.root)]
    return {root: folder / "packages" / str(i) / root.name for i, root in enumerate(outside)}


def _declared(install: Install) -> Declarations | None:
    try:
        return declarations(install)
    except DeclarationsUnknownError:
        return None


def _libraries(install: Install) -> dict[Path, Path]:
    """Libraries to stand before: place in the install → the file, links resolved."""
    return {lib.path: Path(os.path.realpath(lib.path)) for lib in install.libraries
            if lib.path.exists()}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Exports:
    """C functions that a library exports, and what it needs."""

    soname: str
    names: tuple[str, ...]
    needed: tuple[str, ...]


def exports(path: Path) -> Exports:
    """What the file at `path` exports; LayersUnavailableError if it is no readable library."""
    if not path.is_file():  # opening a pipe would wait for its writer
        raise LayersUnavailableError(f"layers: {path} is no regular file; see `probe`")
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            segments = read_segments(data)  # type: ignore[arg-type]  # a map is sliced like bytes
        names = tuple(_function_names(segments.symbols, segments.names)) if segments else ()
    except (ValueError, OverflowError, struct.error) as error:  # tables that lie, an empty file
        raise LayersUnavailableError(f"layers: {path} is damaged: {error}; see `probe`") from None
    if segments is None:
        raise LayersUnavailableError(f"layers: {path} is no 64-bit library; see `probe`")
    return Exports(segments.soname or path.name, names, segments.needed)


def _function_names(symbols: bytes, text: bytes) -> Iterator[str]:
    """Defined, visible C functions; those of C++ bind to the real library, which shims need."""
    for name, info, other, section, _, _ in _SYMBOL.iter_unpack(symbols):
        if not section or info >> 4 not in _GLOBAL_OR_WEAK or info & 15 not in _FUNCTION_KINDS:
            continue
        spelled = text[name : text.index(b"\0", name)]
        if other & 3 in (0, 3) and not spelled.startswith((b"_Z", b"_init", b"_fini")):
            yield spelled.decode("utf-8", "replace")


def _key(install: Install, libraries: Mapping[Path, Path]) -> str:
    digest = blake2b(digest_size=12)
    here = Path(__file__).parent
    files = [core_library(), *sorted(here.glob("*.py"))]
    for path in [*files, *libraries.values(), *install.include_dirs]:
        facts = path.stat()
        digest.update(os.fsencode(f"{path}:{facts.st_size}:{facts.st_mtime_ns};"))
    digest.update(os.fsencode("".join(f"{place};" for place in libraries)))
    return digest.hexdigest()


@closed_to_others()
def _make(
    folder: Path,
    install: Install,
    libraries: Mapping[Path, Path],
    exported: Mapping[Path, Exports],
    rows: list[InterposedFunction],
    declared: Declarations | None,
) -> None:
    """Everything below `folder`, complete or not at all; what is damaged there is replaced file by
    file, under programs that use it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    try:
        unfinished.chmod(0o755)
        (unfinished / "table").write_bytes(table.write(rows, declared, arch()))
        (unfinished / "core").mkdir()
        shutil.copyfile(core_library(), unfinished / "core" / CORE)
        shims = _write_shims(unfinished, folder, libraries, exported, rows)
        _mirror(install.root, _root(unfinished, install), shims)
        for place, mirror in _packages(unfinished, install).items():
            _mirror(place, mirror, shims)
        sealed.seal(unfinished)
        try:
            unfinished.rename(folder)
        except OSError:  # another process was faster, or what lies there is damaged
            if not sealed.is_whole(folder):
                sealed.replace(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _write_shims(
    unfinished: Path,
    folder: Path,
    libraries: Mapping[Path, Path],
    exported: Mapping[Path, Exports],
    rows: list[InterposedFunction],
) -> dict[Path, Path]:
    """Place of a library in the install → its shim's final path; one shim per real file."""
    numbers = {row.name: i for i, row in enumerate(rows)}
    by_real = {real: folder / "shims" / str(i) / exported[real].soname
               for i, real in enumerate(dict.fromkeys(libraries.values()))}  # fmt: skip
    by_soname = {path.name: path for path in by_real.values()}
    for real, path in by_real.items():
        facts = exported[real]
        others = [str(by_soname[n]) for n in facts.needed if n in by_soname and n != path.name]
        needed = (str(folder / "core" / CORE), *others, str(real))
        numbers_wanted = tuple(numbers[n] for n in facts.names)
        shim = image.Shim(facts.soname, str(real), needed, facts.names, numbers_wanted)
        place = unfinished / path.relative_to(folder)
        place.parent.mkdir(parents=True)
        place.write_bytes(image.write(shim, arch()))
    return {place: by_real[real] for place, real in libraries.items()}


def _mirror(real: Path, unfinished: Path, shims: Mapping[Path, Path]) -> None:
    """`unfinished` as `real`, with each shim in its library's place."""
    opened = {parent for place in shims for parent in place.parents if place.is_relative_to(real)}
    unfinished.mkdir(parents=True)
    for entry in _entries(real):
        target = unfinished / entry.name
        if entry in shims:
            target.symlink_to(shims[entry])
        elif entry in opened and entry.is_dir():
            _mirror(entry, target, {p: s for p, s in shims.items() if p.is_relative_to(entry)})
        else:
            target.symlink_to(entry)


def _entries(folder: Path) -> Iterable[Path]:
    return sorted(folder.iterdir())
