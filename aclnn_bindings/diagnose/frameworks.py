"""Says what of this Python's packages fails on this CANN; reads metadata, imports nothing.

Only where a framework for NPUs is installed: a Python without one compiles and loads nothing of
CANN's. Sources are named beside each rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Final

from ..install.describe import Install
from ..install.file_queries import exists, matching
from .pairs import mismatches
from .surroundings import Cause

FRAMEWORKS: Final = (
    "torch_npu", "mindspore", "paddle-custom-npu", "vllm-ascend", "sgl-kernel-npu",
    "triton-ascend",
)  # fmt: skip
# The operator compiler imports these when it starts; without one, 500001 (vllm-ascend#692,
# onnxruntime#14121; the toolkit's installation guide).
COMPILER: Final = ("decorator", "attrs", "psutil", "scipy", "cloudpickle", "tornado", "absl-py")
PACKAGES: Final = ("torch", *FRAMEWORKS, "vllm", "transformers", "numpy")
_ATB_USERS: Final = ("vllm-ascend", "sgl-kernel-npu")
_NNAL: Final = (
    "install Ascend-cann-nnal of the toolkit's release and source nnal/atb/set_env.sh "
    "(vllm-ascend#152)"
)


def installed(name: str) -> str | None:
    """The version of a package of this Python by its metadata, or None."""
    try:
        return metadata.version(name)
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return None


def frameworks(install: Install, environ: Mapping[str, str]) -> Iterator[Cause]:
    """What will fail in a program of this Python, if it has a framework for NPUs."""
    if install.kind != "cann" or not any(map(installed, FRAMEWORKS)):
        return
    yield from _torch()
    yield from _compiler(install)
    yield from _atb(install, environ)
    yield from mismatches(install.version, installed)
    if (plain := installed("triton")) and installed("triton-ascend"):
        yield Cause(
            "warning",
            f"triton {plain} stands beside triton-ascend: both are the module `triton`",
            "pip uninstall triton, then install triton-ascend again",
            "triton-ascend's installation guide",
        )


def _torch() -> Iterator[Cause]:
    """torch_npu loads on one version of torch alone (Ascend/pytorch#35, sglang#28628)."""
    torch, npu = installed("torch"), installed("torch_npu")
    if npu and torch is None:
        yield Cause("warning", f"torch_npu {npu} has no torch", f"pip install torch=={_base(npu)}")
    elif npu and torch and _base(torch) != _base(npu):
        yield Cause(
            "warning",
            f"torch {torch} and torch_npu {npu} are of different versions",
            f"install torch_npu {_base(torch)}: it loads on torch of exactly its version",
            "importing it ends with an undefined symbol of c10",
        )


def _compiler(install: Install) -> Iterator[Cause]:
    if lacking := [name for name in COMPILER if installed(name) is None]:
        yield Cause(
            "warning",
            f"the operator compiler's Python modules are missing: {', '.join(lacking)}",
            f"pip install {' '.join(lacking)}",
            "aclSetCompileopt and aclopCompileAndExecute end with 500001",
        )
    numpy, release = installed("numpy"), _release(install)
    # CANN 8.2.RC1 still needs numpy below 2 (vllm-ascend#2210).
    if numpy and int(numpy.partition(".")[0]) >= 2 and release and release < (8, 3):
        yield Cause(
            "warning",
            f"numpy {numpy} is too new for the operator compiler of CANN {install.version}",
            "pip install 'numpy<2'",
            "aclSetCompileopt ends with 500001",
        )


def _atb(install: Install, environ: Mapping[str, str]) -> Iterator[Cause]:
    home = environ.get("ATB_HOME_PATH")
    if home:
        if not exists(Path(home) / "lib/libatb.so"):
            yield Cause("warning", f"ATB_HOME_PATH names {home}, which has no lib/libatb.so", _NNAL)
        return
    user = next((name for name in _ATB_USERS if installed(name)), None)
    if user is None:
        return
    places = (install.root.parent, install.root.parent.parent)
    pattern = "nnal/atb/*/atb/cxx_abi_*/lib/libatb.so"
    libraries = [path for place in places for path in matching(place, pattern)]
    what = "ATB is installed but not set up in this shell" if libraries else "no NNAL (ATB)"
    yield Cause("warning", f"{what}: {user} needs libatb.so", _NNAL)


def _base(version: str) -> str:
    match = re.match(r"\d+\.\d+\.\d+", version)
    return match[0] if match else version


def _release(install: Install) -> tuple[int, int] | None:
    match = re.match(r"(\d+)\.(\d+)", install.version or "")
    return (int(match[1]), int(match[2])) if match else None
