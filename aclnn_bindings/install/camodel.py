"""Finds CANN's own simulator of a chip on the loader's path; starts none.

`cannsim record PROGRAM -s Ascend950` (`npusim` from late 2026) and `msprof op simulator` run real
libraries without a chip: they put `tools/simulator/<soc>/lib` of the toolkit, which holds
libruntime_camodel.so, first in LD_LIBRARY_PATH. Device 0 is the only one, collectives are not
simulated, and a kernel takes seconds to minutes (documents of CANN Simulator 9.1 and of msprof,
www.hiascend.com/document/detail/zh/canncommercial/80RC22/devaids/auxiliarydevtool/atlasopdev_16_0083.html).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from .file_queries import exists, loader_path

LIBRARY: Final = "libruntime_camodel.so"


def camodel(environ: Mapping[str, str]) -> Path | None:
    """The folder of the simulator that the loader reaches, or None."""
    return next((f for f in loader_path(environ) if exists(f / LIBRARY)), None)
