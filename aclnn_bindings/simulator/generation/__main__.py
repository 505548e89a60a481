"""Writes the simulator's headers, entry points, rule tables and refusals; run by CMake.

    python generate.py --catalogs DIR --sources DIR [--kernels FILE] --output DIR

Standard library only. Reads the newest catalog, scans `--sources` for op rows (macro calls
ACLNN_…) and runtime functions (ACLSIM_API), and writes into `--output`: `include/`, `src/`, and a
table of the rows that `--kernels` names, a line each.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import catalog as catalogs, entries, limits, params, rows, stubs, versions
from .headers import Headers
from .text import write

ENTRY_FILES = 4  # entry points are split so that they compile side by side


def main(arguments: list[str]) -> None:
    """Generate everything; a fact that does not fit raises with its name."""
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("--catalogs", "--sources", "--output"):
        parser.add_argument(option, type=Path, required=True)
    parser.add_argument("--kernels", type=Path)
    options = parser.parse_args(arguments)
    catalog = catalogs.load(options.catalogs)
    kernels = options.sources / "ops"
    ops = rows.find_ops(sorted(kernels.rglob("*.cpp")), catalog)
    implemented = frozenset(rows.find_functions(sorted(options.sources.rglob("*.cpp"))))
    exported = [n for library in stubs.LIBRARIES for n in stubs.exported(catalog, library)]
    exported += stubs.collectives(catalog, implemented)
    exported += stubs.beside_operators(catalog, implemented)
    sources = options.output / "src"
    for library in stubs.LIBRARIES:
        text = stubs.refusals(catalog, library, implemented)
        write(sources / f"refusals_{library}.cpp", text)
    for kind in stubs.PARTS:
        write(sources / f"part_{kind}.c", stubs.part(catalog, ops, kind))
    for part in range(ENTRY_FILES):
        write(
            sources / f"entries_{part}.cpp", entries.entry_points(catalog, ops[part::ENTRY_FILES])
        )
    write(sources / "limits.cpp", limits.limit_rows(catalog, ops))
    write(sources / "operator_keys.cpp", limits.operator_keys(ops))
    for family in sorted(path for path in kernels.iterdir() if path.is_dir()):
        text = params.names(catalog, rows.find_ops(sorted(family.glob("*.cpp")), catalog))
        write(sources / "params" / f"{family.name}.h", text)
    if options.kernels:
        named = options.kernels.read_text(encoding="utf-8").split()
        write(sources / "kernel_rows.cpp", entries.kernel_rows(catalog, sorted(named)))
    Headers(catalog, exported, ops).write(options.output / "include", implemented)
    versions.write_files(options.output, catalog.version)


if __name__ == "__main__":
    main(sys.argv[1:])
