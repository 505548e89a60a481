"""Owns the instrumented copy of the simulator in the build folder: sources, build, install.

Nothing of it is ever part of the package. Layout below `build/mutation/`: `tree/` (a copy of what
CMake needs, kernels instrumented), `cmake/` (its build), `mutants.json` (every mutant by id) and
`dropped.json` (names of those that do not compile).
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from . import bugs
from .bugs import Bug
from .forms import WIDTHS
from .instrument import Rendered, rendered
from .operators import sites
from .sites import Mutant, Site, keyed

ROOT: Final = Path(__file__).resolve().parents[2]
BUILD: Final = ROOT / "build" / "mutation"
BOOK: Final = ROOT / "build" / "mutation-book"
SAMPLE: Final = ROOT / "build" / "mutation-sample"
_SIMULATOR: Final = Path("aclnn_bindings/simulator")
_COPIED: Final = ("CMakeLists.txt", "aclnn_bindings/CMakeLists.txt", "aclnn_bindings/catalogs",
                  "aclnn_bindings/native", "aclnn_bindings/simulator")  # fmt: skip
_LEFT: Final = shutil.ignore_patterns("cann", "__pycache__", "*.pyc")
# Kernels and what they share. Threads are left out: `check` runs kernels on one.
_GLOBS: Final = ("ops/*/*.cpp", "loops/*.cpp", "loops/*.h", "ascendcl/dtype.h")
# Where defects of the launch, whatever the operator, are planted by hand; nothing else is.
_EXCLUDED: Final = frozenset(("loops/parallel.cpp", "loops/parallel.h"))
# Ids of a file start at a multiple of _BLOCK that its name chooses, so that a change in one file,
# or a new one, recompiles hardly any other. _BLOCK * _BLOCKS is the size of the board.
_BLOCK: Final = 4096
_BLOCKS: Final = 256
# Copies for wider machines and forced inlining multiply the switches, and compile for minutes.
_PLAIN: Final = (
    (re.compile(r"#define ACL_VECTOR __attribute__.*"), "#define ACL_VECTOR"),
    (re.compile(r"#define ACL_INLINE inline __attribute__.*"), "#define ACL_INLINE inline"),
)
_POSITION: Final = re.compile(r"^([^\s:]+):(\d+):(\d+):", re.M)
_ROUNDS: Final = 25
DOES_NOT_COMPILE: Final = "it does not compile"


_at = BUILD


def use(folder: Path) -> None:
    """Work in another folder than `build/mutation`, with a build of its own."""
    global _at
    _at = folder


def work() -> Path:
    """The folder of the build at hand and of what runs over it leave behind."""
    return _at


def tree() -> Path:
    """The copy that is instrumented; it is also where it is installed."""
    return _at / "tree"


def install() -> Path:
    """The instrumented simulator, laid out like the real one."""
    return tree() / _SIMULATOR / "cann"


class BuildFailedError(RuntimeError):
    """The instrumented simulator does not build; the message is the compiler's."""


class Kernel:
    """One instrumented file: its source, sites and how they were written."""

    def __init__(self, path: Path, source: bytes, found: list[Site], first: int) -> None:
        self.path, self.source, self.sites = path, source, found
        for site in found:
            site.base, first = first, first + len(site.changes)
        self.mutants = keyed(self._changes(), str(path))
        self.rendered = Rendered()

    def _changes(self) -> Iterator[Any]:
        for site in self.sites:
            line = self.source.count(b"\n", 0, site.start) + 1
            text = self.source[site.start : site.end].decode()
            for change in site.changes:
                yield site, change, line, text

    def write(self, target: Path, dropped: set[int]) -> None:
        """Put the instrumented text into the tree, unless it is there."""
        self.rendered = rendered(self.source, self.sites, dropped)
        text = self.rendered.text
        for pattern, plain in _PLAIN:
            text = pattern.sub(plain, text)
        _write(target, text)


def sources() -> Path:
    """The folder that a bug's `file` is relative to."""
    return ROOT / _SIMULATOR / "src"


def kernels() -> list[Kernel]:
    """Every kernel file with its sites, the hand-written bugs among them."""
    paths = sorted(p for g in _GLOBS for p in sources().glob(g))
    names = [str(path.relative_to(sources())) for path in paths]
    found: list[Kernel] = []
    planned = bugs.load()
    blocks: set[int] = set()
    for name in names:
        if name in _EXCLUDED:
            continue
        text = (sources() / name).read_bytes()
        fitting = [b for b in planned if b.file == name and bugs.fits(text, b)]
        here = bugs.planted(text, sites(text), fitting)
        found.append(Kernel(Path(name), text, here, _BLOCK * _block(name, blocks)))
    return found


def kernels_of(planned: Sequence[Bug], widths: Mapping[str, str]) -> list[Kernel]:
    """The files that bugs change, with those bugs alone; see `bugs.planted`."""
    found: list[Kernel] = []
    blocks: set[int] = set()
    for name in sorted({bug.file for bug in planned}):
        text = (sources() / name).read_bytes()
        here = bugs.planted(text, [], [b for b in planned if b.file == name], widths)
        found.append(Kernel(Path(name), text, here, _BLOCK * _block(name, blocks)))
    return found


def _block(name: str, taken: set[int]) -> int:
    """The block that a file's name chooses, or the next free one."""
    block = zlib.crc32(name.encode()) % _BLOCKS
    while block in taken:
        block = (block + 1) % _BLOCKS
    taken.add(block)
    return block


def build(jobs: int = 2, only: Collection[str] = ()) -> list[Mutant]:
    """Instrument, drop what does not compile, build and install; the mutants that can be on.

    `only` names those to plant; empty: all of them, which takes longer to compile.
    """
    files = kernels()
    book = work() / "dropped.json"
    names = set(json.loads(book.read_text())) if book.exists() else set()
    dropped = {m.id for k in files for m in k.mutants
               if m.key in names or (only and m.key not in only)}  # fmt: skip
    try:
        return _built(files, dropped, jobs)
    finally:
        _remember(files, dropped, only)


def build_book(planned: Sequence[Bug], jobs: int = 2) -> tuple[list[Mutant], dict[str, str]]:
    """Build with bugs alone: (mutants that can be on, what keeps others out by name).

    A bug that does not compile where it stands is tried again with what is around it.
    """
    widths: dict[str, str] = {}
    problems = {b.name: f"{b.file} has no {b.after or b.find!r}" for b in planned if not _fits(b)}
    left = [b for b in planned if b.name not in problems]
    while True:
        files = kernels_of(left, widths)
        dropped: set[int] = set()
        mutants = _built(files, dropped, jobs)
        names = {m.after for k in files for m in k.mutants}
        overlapping = [b.name for b in left if b.name not in names]
        problems |= dict.fromkeys(overlapping, "another bug of the book overlaps it in part")
        refused = {m.after for k in files for m in k.mutants if m.id in dropped}
        if not refused:
            return mutants, problems
        for name in refused:
            at = WIDTHS.index(widths.get(name, WIDTHS[0])) + 1
            if at == len(WIDTHS):
                problems[name] = DOES_NOT_COMPILE
            else:
                widths[name] = WIDTHS[at]
        left = [b for b in left if b.name not in problems]


def _fits(bug: Bug) -> bool:
    path = sources() / bug.file
    return path.is_file() and bugs.fits(path.read_bytes(), bug)


def _built(files: list[Kernel], dropped: set[int], jobs: int) -> list[Mutant]:
    """Build and install; adds to `dropped` what does not compile."""
    _copy({str(k.path) for k in files})
    _write_all(files, dropped)
    _configure()
    _compile(files, dropped, jobs)
    _run(["cmake", "--install", str(work() / "cmake"), "--prefix", str(tree())])
    mutants = [m for k in files for m in k.mutants if m.id not in dropped]
    (work() / "mutants.json").write_text(json.dumps([asdict(m) for m in mutants]))
    return mutants


def _remember(files: list[Kernel], dropped: set[int], only: Collection[str]) -> None:
    """Keep the names of what does not compile, so that the next build starts without it."""
    named = {m.id: m.key for k in files for m in k.mutants}
    names = {named[i] for i in dropped if not only or named[i] in only}
    book = work() / "dropped.json"
    known = set(json.loads(book.read_text())) if book.exists() else set()
    book.write_text(json.dumps(sorted(known | names), indent=0))


def build_id() -> str:
    """Changes when the numbers of mutants may have changed."""
    path = work() / "mutants.json"
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def load() -> list[Mutant]:
    """The mutants of the last build; BuildFailedError if there is none."""
    path = work() / "mutants.json"
    if not path.exists():
        raise BuildFailedError(f"{path} is missing: run `python -m tests.mutation build` first")
    return [Mutant(**m) for m in json.loads(path.read_text())]


def _copy(instrumented: Collection[str]) -> None:
    """Bring the tree up to date without touching files that did not change, but for those that
    are `instrumented`."""
    left = {sources() / name for name in instrumented}
    for part in _COPIED:
        source = ROOT / part
        if source.is_file():
            _write(tree() / part, source.read_text())
            continue
        kept = set()
        for path in source.rglob("*"):
            ignored = _LEFT(str(path.parent), [path.name]) or "cann" in path.parts
            if path.is_file() and not ignored:
                target = tree() / path.relative_to(ROOT)
                kept.add(target)
                if path not in left:
                    _write_bytes(target, path.read_bytes())
        for old in (tree() / part).rglob("*"):
            if old.is_file() and old not in kept and install() not in old.parents:
                old.unlink()
    flags = tree() / _SIMULATOR / "src/ops/levels.cmake"
    _write(flags, flags.read_text().replace("-O3", "-O1"))
    header = (Path(__file__).parent / "mutants.h").read_text()
    _write(tree() / _SIMULATOR / "include" / "mutants.h", header)


def _write(path: Path, text: str) -> None:
    _write_bytes(path, text.encode())


def _write_bytes(path: Path, data: bytes) -> None:
    if path.exists() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _write_all(files: list[Kernel], dropped: set[int]) -> None:
    for kernel in files:
        kernel.write(tree() / _SIMULATOR / "src" / kernel.path, dropped)


def _configure() -> None:
    launcher = shutil.which("ccache")
    extra = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"] if launcher else []
    _run(["cmake", "-S", str(tree()), "-B", str(work() / "cmake"), "-G", "Ninja",
          f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_CXX_FLAGS=-w",
          "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -fno-strict-aliasing", *extra])  # fmt: skip
    _run(["cmake", "--build", str(work() / "cmake"), "--target", "aclsim_generated"])


def _run(command: list[str]) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        raise BuildFailedError(f"{shlex.join(command)}:\n{done.stdout}{done.stderr}")


def _compile(files: list[Kernel], dropped: set[int], jobs: int) -> None:
    """Build, dropping the mutants that the compiler objects to, until it objects no more."""
    by_path = {str(tree() / _SIMULATOR / "src" / k.path): k for k in files}
    for _ in range(_ROUNDS):
        try:
            _run(["cmake", "--build", str(work() / "cmake"), f"-j{jobs}", "--", "-k", "0"])
            return
        except BuildFailedError as error:
            blamed = _blamed(str(error), by_path, dropped)
            if not blamed:
                raise BuildFailedError(str(error)[-6000:]) from None
        dropped |= blamed
        print(f"{len(blamed)} mutants do not compile: dropped", flush=True)
        _write_all(files, dropped)
    raise BuildFailedError(f"mutants still do not compile after {_ROUNDS} rounds")


def _blamed(said: str, by_path: dict[str, Kernel], dropped: set[int]) -> set[int]:
    """Mutants at the positions of errors; where there is none, at those of the notes around."""
    found: set[int] = set()
    base = work() / "cmake"  # ccache makes paths relative to where the compiler runs
    for block in re.split(r"(?=^[^\s:]+:\d+:\d+: (?:fatal )?error:)", said, flags=re.M):
        for path, line, column in _POSITION.findall(block):
            kernel = by_path.get(os.path.normpath(base / path))
            ids = kernel.rendered.ids_at(int(line), int(column)) if kernel else ()
            fresh = set(ids) - dropped
            if fresh:
                found |= fresh
                break
    return found
