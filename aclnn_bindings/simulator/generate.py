"""Owns being run by CMake: hands over to the `generation` package beside it, refuses imports.

python generate.py --catalogs DIR --sources DIR [--kernels FILE] --output DIR
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    runpy.run_module("generation", run_name="__main__")
