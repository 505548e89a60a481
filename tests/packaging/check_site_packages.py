"""Fails when an installed environment holds what is not ours, or OpenBLAS without its licence.

Usage: check_site_packages.py VENV
"""

import sys
from pathlib import Path


def problems(venv: Path) -> list[str]:
    (site,) = venv.glob("lib/python3*/site-packages")
    found = [
        f"{name} landed in site-packages"
        for name in ("cli", "tests", "docs", "benchmarks", "build_backend", "mindtorch_build.py")
        if (site / name).exists()
    ]
    found += [
        f"{name} is missing from site-packages"
        for name in ("aclnn_bindings", "mindtorch", "mindtorch_npu")
        if not (site / name).is_dir()
    ]
    sources = [
        str(path.relative_to(site))
        for package in ("aclnn_bindings", "mindtorch", "mindtorch_npu")
        for path in (site / package).rglob("*")
        if path.suffix in {".cpp", ".c", ".h", ".cmake"} and "include" not in path.parts
    ]
    libraries = site / "aclnn_bindings" / "simulator" / "cann" / "lib64"
    if any(libraries.glob("*openblas*.so*")) and not any(libraries.glob("*openblas*LICENSE*")):
        found.append("OpenBLAS is in the wheel without its licence")
    return found + [f"{path} is a source file in the wheel" for path in sources]


if __name__ == "__main__":
    found = problems(Path(sys.argv[1]))
    print("\n".join(found) or "site-packages holds only the three packages")
    sys.exit(bool(found))
