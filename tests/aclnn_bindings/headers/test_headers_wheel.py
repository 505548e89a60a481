"""Real input: the ACL headers inside the torch-npu 2.8.0 wheel, fetched when the tests run."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import truth
from test_headers_accounting import account

from aclnn_bindings.interface.headers import parse_tree
from aclnn_bindings.interface.headers.cache import cache_folder
from aclnn_bindings.interface.headers.source import decode
from aclnn_bindings.interface.signature import Declarations, Kind

WHEEL = "torch-npu==2.8.0"
INSIDE = "torch_npu/include/third_party/acl/inc/"


def fetch(folder: Path) -> Path:
    """The wheel in the cache folder; skips the test with the reason when it cannot be had."""
    have = list(folder.glob("torch_npu-2.8.0*.whl"))
    if have:
        return have[0]
    folder.mkdir(parents=True, exist_ok=True)
    target = ["--no-deps", "-q", "-d", str(folder), "--only-binary", ":all:"]
    where = ["--python-version", "3.11", "--platform", "manylinux_2_28_x86_64"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", WHEEL, *target, *where],
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.skip(f"{WHEEL} did not download in four minutes")
    have = list(folder.glob("torch_npu-2.8.0*.whl"))
    if not have:
        pytest.skip(f"{WHEEL} cannot be downloaded: {done.stderr.strip()[-200:]}")
    return have[0]


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(fetch(Path(cache_folder()) / "wheels")) as archive:
        for name in archive.namelist():
            if name.startswith(INSIDE) and name.endswith(".h"):
                archive.extract(name, root)
    return root / INSIDE


@pytest.fixture(scope="module")
def found(headers: Path) -> Declarations:
    return parse_tree([headers])


def test_core_functions_of_the_wheel_are_all_found(found: Declarations) -> None:
    assert len([n for n, f in found.functions.items() if f.header.startswith("acl/acl")]) == 383
    assert found.functions["aclrtMalloc"].prototype == (
        "aclError (void **, size_t, aclrtMemMallocPolicy)"
    )


def test_all_kinds_of_core_parameters_are_known(found: Declarations) -> None:
    core = [f for f in found.functions.values() if f.header.startswith("acl/")]
    by_value = [(f.name, p.type) for f in core for p in f.params if p.kind is Kind.STRUCT]
    assert {t for _, t in by_value} <= set(found.structs)


def test_every_header_of_the_wheel_is_accounted_for(headers: Path) -> None:
    chunks = 0
    for header in sorted(headers.rglob("*.h")):
        _, count = account(str(header), decode(header.read_bytes()))
        chunks += count
    assert chunks > 1000


def test_version_and_codes_come_from_the_wheel(found: Declarations) -> None:
    assert (found.constants["ACL_MAJOR_VERSION"], found.constants["ACL_MINOR_VERSION"]) == (1, 12)
    assert found.constants["ACL_ERROR_INVALID_PARAM"] == 100000
    assert found.enums["aclDataType"]["ACL_BF16"] == 27


def test_what_is_skipped_is_cxx_or_a_macro(found: Declarations) -> None:
    reasons = {s.reason.split(":")[0].split(",")[0] for s in found.skipped}
    assert reasons <= {
        "C++", "macro with parameters", "#error would be reported by a compiler",
        "defined in the header",
    }  # fmt: skip


@pytest.mark.skipif(truth.COMPILER is None, reason="no C++ compiler on PATH")
def test_compiler_agrees_on_the_headers_of_the_wheel(
    headers: Path, found: Declarations, tmp_path: Path
) -> None:
    verdict = truth.ask(headers, found, tmp_path)
    assert not verdict.wrong, "\n".join(verdict.wrong[:20])
    assert verdict.checked > 3000
