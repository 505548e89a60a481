"""Which library a function comes from, by whose header it is called, and what is refused.

Each case is a process of its own: a process can load one install.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import fake_cann
import pytest

# Both phases of aclnnMul with one parameter more than CANN's, which the fake writes to.
MUL = r"""
#include <stdint.h>
static float *to;
int aclnnMulGetWorkspaceSize(int64_t first, const void *x, const void *y, void *z, uint64_t *n,
                             void **e)
{ to = z; *n = 0; *e = &to; return first == 7 ? 0 : 161002; }
int aclnnMul(void *w, uint64_t n, void *e, void *s) { to[0] = 42; return 0; }
"""
MUL_HEADER = """
#include "aclnn/acl_meta.h"
aclnnStatus aclnnMulGetWorkspaceSize(int64_t first, const aclTensor *x, const aclTensor *y,
                                     aclTensor *z, uint64_t *workspaceSize,
                                     aclOpExecutor **executor);
aclnnStatus aclnnMul(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                     aclrtStream stream);
"""
MEDIA = r"""
#include <unistd.h>
__attribute__((constructor)) static void told(void) { write(1, "media was loaded\n", 17); }
int hi_mpi_sys_init(void) { return 3; }
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return fake_cann.copy(fake_cann.whole(), tmp_path / "8.1.RC1")


def said(root: Path, code: str, environ: Mapping[str, str] | None = None) -> str:
    """What a process prints that runs `code` with `cann` opened at `root`."""
    head = f"import os, aclnn_bindings as b, numpy as np\ncann = b.open({str(root)!r})\n"
    variables = {**os.environ, **fake_cann.environment(root), **(environ or {})}
    done = subprocess.run(
        [sys.executable, "-c", head + code], env=variables, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def raised(root: Path, code: str, environ: Mapping[str, str] | None = None) -> str:
    """The error that `code` ends with, by class and text."""
    lines = "".join(f"    {line}\n" for line in code.splitlines())
    return said(
        root, f"try:\n{lines}except Exception as error:\n    print(type(error).__name__, error)\n",
        environ,
    )  # fmt: skip


def package(tmp_path: Path, source: str, header: str = "") -> dict[str, str]:
    """The variable that puts a custom operator package with this library before the install."""
    vendor = tmp_path / "vendor"
    fake_cann.compile_library(vendor / "op_api/lib/libcust_opapi.so", source)
    if header:
        (vendor / "op_api/include").mkdir()
        (vendor / "op_api/include/aclnn_mul.h").write_text(header)
    return {"ASCEND_CUSTOM_OPP_PATH": str(vendor)}


def test_a_function_that_the_runtime_lacks_costs_no_library(root: Path) -> None:
    fake_cann.compile_library(root / "lib64/libacl_dvpp_mpi.so", MEDIA)
    code = "print(cann.symbols.core('aclFinalizeReference'), cann.has_op('aclnnNone'))\n"
    code += "cann.runtime.start(); print(cann.symbols.address('aclnnNone'))"
    assert said(root, code) == "0 False\n0"


def test_a_library_of_media_is_loaded_for_its_own_functions(root: Path) -> None:
    fake_cann.compile_library(root / "lib64/libacl_dvpp_mpi.so", MEDIA)
    code = "print(cann.symbols.provider('hi_mpi_sys_init').name)"
    assert said(root, code).split("\n") == ["media was loaded", "libacl_dvpp_mpi.so"]


def test_a_custom_package_is_called_by_its_own_header(root: Path, tmp_path: Path) -> None:
    environ = package(tmp_path, MUL, MUL_HEADER)
    code = "x, out = cann.tensor(np.ones(6, np.float32)), cann.empty((6,))\n"
    code += "cann.ops.aclnnMul(7, x, x, out); print(out.numpy()[0], cann.has_op('aclnnMul'))"
    assert said(root, code, environ) == "42.0 True"


def test_a_custom_package_without_a_header_is_refused(root: Path, tmp_path: Path) -> None:
    environ = package(tmp_path, MUL)
    text = raised(root, "print(cann.has_op('aclnnMul'))\ncann.ops.aclnnMul", environ)
    assert text.startswith("False\nUntrustedSignatureError aclnnMul: the custom operator package")
    assert "vendor/op_api/include" in text


def test_phases_of_two_libraries_are_refused(root: Path, tmp_path: Path) -> None:
    environ = package(tmp_path, "int aclnnMulGetWorkspaceSize(void) { return 0; }", MUL_HEADER)
    text = raised(root, "print(cann.has_op('aclnnMul'))\ncann.ops.aclnnMul", environ)
    assert text.startswith("False\nUntrustedSignatureError aclnnMul: its phases are in two")


def test_a_header_that_differs_from_its_versions_catalog_is_refused(root: Path) -> None:
    header = root / "include/acl/acl.h"
    header.write_text(header.read_text().replace("int8_t cubeMathType", "int64_t cubeMathType"))
    code = "print(cann.has_op('aclnnMatmul'), cann.has_op('aclnnMul'))\ncann.ops.aclnnMatmul"
    text = raised(root, code)
    assert text.startswith("False True\nUntrustedSignatureError aclnnMatmul: acl/acl.h differs")
    assert "MINDTORCH_TRUST_HEADERS=1" in text
    assert raised(root, code, {"MINDTORCH_TRUST_HEADERS": "1"}) == "True True"


def test_a_second_install_in_one_process_is_refused_by_name(root: Path, tmp_path: Path) -> None:
    second = fake_cann.copy(root, tmp_path / "9.0.0")
    code = f"cann.runtime.start(); cann.close()\nb.open({str(second)!r}).runtime.start()"
    text = raised(root, code)
    assert text.startswith(f"RuntimeStateError load libnnopbase.so of {second}: {root}/lib64/")
    assert "start another process" in text


def test_what_set_env_would_export_is_set(root: Path) -> None:
    code = "cann.runtime.start(); print(os.environ['ASCEND_OPP_PATH'])"
    environ = {"ASCEND_OPP_PATH": "", "ASCEND_HOME_PATH": ""}
    assert said(root, code, environ) == str(root / "opp")
    code = "cann.functions.aclrtGetSocName(); print(os.environ.get('ASCEND_OPP_PATH'))"
    assert said(root, code, {"ASCEND_OPP_PATH": str(root)}) == str(root)


def test_an_opp_of_another_install_is_warned_of(root: Path, tmp_path: Path) -> None:
    code = "import warnings; warnings.simplefilter('error')\ncann.runtime.start()"
    text = raised(root, code, {"ASCEND_OPP_PATH": str(tmp_path)})
    assert f"ASCEND_OPP_PATH={tmp_path} is of another install" in text
    text = raised(root, code, {"ASCEND_OPP_PATH": str(tmp_path / "gone")})
    assert "gone does not exist" in text


def test_a_package_that_needs_the_installs_operators_provides_only_its_own(
    root: Path, tmp_path: Path
) -> None:
    environ = package(tmp_path, MUL, MUL_HEADER)
    library = tmp_path / "vendor/op_api/lib/libcust_opapi.so"
    operators = next((root / "lib64").glob("libopapi*.so"))
    fake_cann.compile_library(library, MUL, [operators])
    code = "print(cann.symbols.provider('aclnnAdd').role, cann.has_op('aclnnMul'))"
    assert said(root, code, environ) == "opapi True"
