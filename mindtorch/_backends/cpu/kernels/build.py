"""Writes the C source of the extension module from kernels.h: `build.py OUTPUT.c`; run by CMake."""

import sys
from pathlib import Path

from cffi import FFI

MODULE = "mindtorch._backends.cpu._kernels"


def emit(output: Path) -> None:
    """Write the API-mode wrapper of every entry point in kernels.h to `output`."""
    here = Path(__file__).resolve().parent
    ffi = FFI()
    ffi.cdef((here / "kernels.h").read_text(encoding="utf-8"))
    ffi.set_source(MODULE, '#include "entry.h"')
    ffi.emit_c_code(str(output))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {Path(sys.argv[0]).name} OUTPUT.c")
    emit(Path(sys.argv[1]))
