"""Libraries in the form that CANN's generator writes for custom operators, on the simulator."""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from mindtorch_npu import recording

from aclnn_bindings.install.library import bundled_simulator
from tests import custom_packages
from tests.custom_packages import ADD, Operator
from tests.simulator import compiled

SCALE = Operator(
    "ScaleRows", ("x", "bias?", "xs*"), ("y", "ys*"),
    ("factor:float", "mode:text", "axes:ints", "n:int", "flag:bool"), (("FLOAT",) * 5,),
)  # fmt: skip
SHIFT = Operator("ShiftPlace", ("x&", "by!"), ("x&",), supports=(("FLOAT",) * 3,))
OTHER = Operator("OnlyOther", ("x",), ("y",), supports=(("FLOAT", "FLOAT"),), socs=(1,))
UNBOUND = Operator("Unbound", ("x",), ("y",), supports=(("FLOAT", "FLOAT"),))
FAILING = Operator("Failing", ("x",), ("y",), supports=(("FLOAT", "FLOAT"),))
NATIVE = Operator("NativeTwice", ("x", "bias?"), ("y",), ("n:int",), supports=(("FLOAT",) * 3,))

KERNELS = """
import numpy as np
seen = []
def AddCustom(x, y):
    return x + y
def ScaleRows(x, bias, xs, factor, mode, axes, n, flag):
    assert bias is None and (mode, axes, n, flag) == ("max", [0, -1], 7, True), (mode, axes)
    return x * factor, [a + n for a in xs]
def ShiftPlace(xRef, by):
    return xRef + by.sum()
def Failing(x):
    raise ValueError("no such row")
"""
NATIVE_KERNEL = r"""
#include <stdio.h>
#include <aclsim/kernel.h>
int twice(const aclsimKernelCall *call, char *message, size_t room) {
  const aclsimTensor *x = (const aclsimTensor *)call->inputs[0].values;
  const aclsimTensor *y = (const aclsimTensor *)call->outputs[0].values;
  int64_t count = 1, n = *(const int64_t *)call->attributes[0].values;
  if (n < 0) return snprintf(message, room, "n is %ld", (long)n);
  if (call->inputs[1].kind != ACLSIM_ABSENT) return 1;
  for (int d = 0; d < x->rank; ++d) count *= x->dims[d];
  for (int64_t i = 0; i < count; ++i) ((float *)y->data)[i] = n * ((const float *)x->data)[i];
  return 0;
}
"""
CALLS = """
import json, numpy as np, aclnn_bindings
cann = aclnn_bindings.open(simulator=True)
outcomes = {}
def t(values, dtype=np.float32):
    return cann.tensor(np.asarray(values, dtype))
def case(name, body):
    try:
        outcomes[name] = body()
        cann.runtime.current_stream().synchronize()
    except Exception as error:
        outcomes[name] = f"{getattr(error, 'code', '')} {error}"
def add(x, y, out, shown=None):
    cann.ops.aclnnAddCustom(x, y, out)
    return (out if shown is None else shown).numpy().tolist()
x, out, base = t([[1, 2, 3], [4, 5, 6]]), cann.empty((2, 3)), cann.empty((2, 3))
case("add", lambda: add(x, x, out))
case("views", lambda: add(x.view((3, 2), (1, 3)), t([[1, 1]] * 3), base.view((3, 2), (1, 3)), base))
case("half", lambda: add(t([1.5], np.float16), t([2], np.float16), cann.empty((1,), "FLOAT16")))
case("dtype", lambda: add(t([1], np.int32), t([1], np.int32), cann.empty((1,), "INT32")))
case("mixed", lambda: add(t([1]), t([1], np.float16), cann.empty((1,))))
case("null", lambda: add(None, x, out))
case("shape", lambda: add(x, x, cann.empty((3, 3))))
def scale():
    y, ys = cann.empty((2, 3)), [cann.empty((2,)), cann.empty((1,))]
    cann.ops.aclnnScaleRows(x, None, [t([1, 2]), t([3])], 2.5, "max", [0, -1], 7, True, y, ys)
    return [y.numpy().tolist(), *(one.numpy().tolist() for one in ys)]
case("scale", scale)
def shift():
    z = t([[1, 2, 3], [4, 5, 6]])
    cann.ops.aclnnShiftPlace(z.view((3, 2), (1, 3)), x.view((2, 2), (3, 2)))
    return z.numpy().tolist()
case("shift", shift)
case("other", lambda: cann.ops.aclnnOnlyOther(x, out))
case("unbound", lambda: cann.ops.aclnnUnbound(x, out))
def native(n):
    cann.ops.aclnnNativeTwice(x, None, n, out)
    return out.numpy().tolist()
case("native", lambda: native(3))
case("native fails", lambda: native(-3))
case("failing", lambda: cann.ops.aclnnFailing(x, out))
case("after", lambda: add(x, x, out))
live = cann.install.root / "lib64" / "libascendcl.so"
import ctypes
count = ctypes.CDLL(str(live)).aclsimLiveHandles
count.restype = ctypes.c_int64
outcomes["live executors"] = count(b"executor")
print(json.dumps(outcomes))
"""


def environment(package: Path, kernels: str) -> dict[str, str]:
    private = ("ACLSIM_", "ASCEND_")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(private)}
    return {**clean, "ASCEND_CUSTOM_OPP_PATH": str(package), "ACLSIM_KERNELS": kernels,
            "ACLSIM_PYTHON": sys.executable}  # fmt: skip


@functools.cache
def outcomes() -> dict[str, Any]:
    """What one program got of every call, in the order of CALLS."""
    folder = Path(tempfile.mkdtemp(dir=compiled.scratch()))
    ops = (ADD, SCALE, SHIFT, OTHER, UNBOUND, FAILING, NATIVE)
    package = custom_packages.package(folder / "vendors/mine", *ops)
    (folder / "my_ops.py").write_text(KERNELS)
    (folder / "twice.cpp").write_text('extern "C" {\n' + NATIVE_KERNEL + "}\n")
    native = folder / "twice.so"
    subprocess.run([compiled.compiler(), "-shared", "-fPIC", f"-I{compiled.install() / 'include'}",
                    str(folder / "twice.cpp"), "-o", str(native)], check=True)  # fmt: skip
    bound = [f"{op.type}={folder / 'my_ops.py'}:{op.type}" for op in (ADD, SCALE, SHIFT, FAILING)]
    environ = environment(package, ";".join([*bound, f"NativeTwice={native}:twice"]))
    done = subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True,
                          check=False, env=environ)  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def test_a_bound_python_function_computes_the_operator() -> None:
    assert outcomes()["add"] == [[2, 4, 6], [8, 10, 12]]
    assert outcomes()["half"] == [3.5]


def test_strided_inputs_are_made_dense_and_strided_outputs_written_back() -> None:
    assert outcomes()["views"] == [[2, 3, 4], [5, 6, 7]]


def test_lists_optional_inputs_and_attributes_arrive_by_the_headers_names() -> None:
    assert outcomes()["scale"] == [[[2.5, 5, 7.5], [10, 12.5, 15]], [8, 9], [10]]


def test_an_input_that_is_written_is_read_with_its_own_strides_and_written_back() -> None:
    assert outcomes()["shift"] == [[15, 16, 17], [18, 19, 20]]  # by: 1 + 3 + 4 + 6


@pytest.mark.parametrize("case", ["dtype", "mixed"])
def test_dtypes_that_the_package_does_not_list_are_refused_in_phase_one(case: str) -> None:
    assert outcomes()[case].startswith("161002 ")
    assert "[DT_FLOAT,DT_FLOAT,DT_FLOAT][DT_FLOAT16,DT_FLOAT16,DT_FLOAT16]" in outcomes()[case]
    assert "remedy: the custom operator of /" in outcomes()[case]


def test_a_package_of_another_product_is_refused() -> None:
    assert outcomes()["other"].startswith("161002 ")
    assert "was built for other products" in outcomes()["other"]


def test_a_null_required_input_is_named() -> None:
    assert outcomes()["null"].startswith("161001 ")
    assert "Parameter x is null" in outcomes()["null"]


def test_an_operator_without_a_kernel_says_how_to_bind_one() -> None:
    assert outcomes()["unbound"].startswith("561003 ")
    assert "--kernel Unbound=my_ops.py:function" in outcomes()["unbound"]
    assert "build the package for this product" in outcomes()["unbound"]


def test_a_library_computes_the_operator_and_says_what_it_refuses() -> None:
    assert outcomes()["native"] == [[3, 6, 9], [12, 15, 18]]
    assert "507015" in outcomes()["native fails"]
    assert "aclnnNativeTwice: n is -3" in outcomes()["native fails"]


def test_a_result_of_another_shape_fails_the_launch() -> None:
    assert "out has shape [3, 3], the result [2, 3]" in outcomes()["shape"]


def test_a_kernel_that_raises_names_its_line_and_the_next_launch_works() -> None:
    assert "ValueError: no such row (my_ops.py:" in outcomes()["failing"]
    assert outcomes()["after"] == [[2, 4, 6], [8, 10, 12]]


def test_refused_and_launched_calls_leave_no_executor_behind() -> None:
    assert outcomes()["live executors"] == 0


PROGRAM_KERNELS = "def AddCustom(x, y):\n    return x + y\n"
PROGRAM = r"""
#include <stdio.h>
#include <acl/acl.h>
#include "aclnn_add_custom.h"
int main() {
  int64_t dims[] = {4};
  float one[] = {1, 2, 3, 4}, got[4];
  void *x, *y; uint64_t size; aclOpExecutor *executor; aclrtStream stream;
  aclInit(nullptr); aclrtSetDevice(0); aclrtCreateStream(&stream);
  aclrtMalloc(&x, 16, ACL_MEM_MALLOC_HUGE_FIRST); aclrtMalloc(&y, 16, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(x, 16, one, 16, ACL_MEMCPY_HOST_TO_DEVICE);
  auto tensor = [&](void *data) {
    return aclCreateTensor(dims, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 1, data);
  };
  aclTensor *a = tensor(x), *b = tensor(x), *out = tensor(y);
  int code = aclnnAddCustomGetWorkspaceSize(a, b, out, &size, &executor);
  if (!code) code = aclnnAddCustom(nullptr, size, executor, stream);
  if (!code) code = aclrtSynchronizeStream(stream);
  aclrtMemcpy(got, 16, y, 16, ACL_MEMCPY_DEVICE_TO_HOST);
  printf("%d %g %g\n", code, got[0], got[3]);
  return code ? 1 : 0;
}
"""


@functools.cache
def program() -> tuple[Path, Path, Path]:
    """A C++ program that links the package's library, the package, and its kernels."""
    folder = Path(tempfile.mkdtemp(dir=compiled.scratch()))
    package = custom_packages.package(folder / "vendors/mine", ADD)
    (folder / "main.cpp").write_text(PROGRAM)
    (folder / "my_ops.py").write_text(PROGRAM_KERNELS)
    root = compiled.install()
    api = package / "op_api"
    command = [
        compiled.compiler(), str(folder / "main.cpp"), f"-I{root / 'include'}",
        f"-I{api / 'include'}", f"-L{root / 'lib64'}", f"-L{api / 'lib'}", "-lcust_opapi",
        "-lascendcl", "-lnnopbase", "-o", str(folder / "main"),
    ]  # fmt: skip
    subprocess.run(command, check=True)
    return folder / "main", package, folder / "my_ops.py"


def under_run(*options: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The program under `mindtorch-npu run` with these options and its own kernel."""
    binary, package, kernels = program()
    environ = environment(package, "")
    del environ["ACLSIM_KERNELS"]
    environ["LD_LIBRARY_PATH"] = str(package / "op_api/lib")  # as bin/set_env.bash sets it
    words = [sys.executable, "-m", "mindtorch_npu", "run", "--simulator", "--kernel",
             f"AddCustom={kernels}", *options, "--", str(binary)]  # fmt: skip
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120,
                          env={**environ, **(env or {})})  # fmt: skip


@pytest.fixture
def judged(tmp_path: Path) -> tuple[str, ...]:
    """Options that judge launches of the package by a reference of one's own."""
    golden = tmp_path / "golden.py"
    golden.write_text("def aclnnAddCustom(x, y):\n    return x + y\n")
    return "--verify", "--golden", str(golden)


def test_layers_record_and_judge_launches_of_a_package(
    tmp_path: Path, judged: tuple[str, ...]
) -> None:
    file = tmp_path / "calls.rec"
    done = under_run("--record", str(file), "--summary", "--strict", *judged)
    assert (done.stdout, done.returncode) == ("0 2 8\n", 0), done.stderr
    assert "aclnnAddCustom" in done.stderr  # of the summary
    packages = recording.open(file).header["install"]["packages"]
    assert list(packages) == [str(program()[1] / "op_api/lib/libcust_opapi.so")]
    assert all(re.fullmatch("[0-9a-f]{12}", digest) for digest in packages.values())


def test_a_fault_planted_into_an_operator_of_a_package_is_judged_wrong(
    judged: tuple[str, ...],
) -> None:
    done = under_run(*judged, env={"ACLSIM_FAULTS": "addcustom:zeros"})
    assert (done.stdout, done.returncode) == ("0 0 0\n", 1), done.stderr


def test_launches_of_a_package_that_nothing_names_are_told(tmp_path: Path) -> None:
    done = under_run("--record", str(tmp_path / "calls.rec"), env={"ASCEND_CUSTOM_OPP_PATH": ""})
    assert (done.stdout, done.returncode) == ("0 2 8\n", 5), done.stderr
    assert "1 launch of custom operators came from a library that no layer" in done.stderr


def test_a_call_of_a_package_can_be_made_to_fail() -> None:
    done = under_run("--fault", "aclnnAddCustomGetWorkspaceSize=561003")
    assert (done.stdout[:7], done.returncode) == ("561003 ", 1), done.stderr


needs_simulator = pytest.mark.skipif(
    bundled_simulator() is None, reason="the simulator is not built"
)
HELD_IN_AN_EXECUTOR = (
    "NnopbaseAddArrayAttr", "NnopbaseAddAttr", "NnopbaseAddBoolArrayAttr",
    "NnopbaseAddBoolArrayInput", "NnopbaseAddFloatArrayAttr", "NnopbaseAddFloatArrayInput",
    "NnopbaseAddIntArrayInput", "NnopbaseAddScalarInput", "NnopbaseAddScalarListInput",
    "NnopbaseSetFormatMatchMode",
)  # fmt: skip
# What a person's kernel has no use for: accepted, and nothing comes back.
ACCEPTED = (
    "NnopbaseAddOpTypeId", "NnopbaseGetRefUnContiguousTensors", "NnopbaseGetUnContExecutor",
    "NnopbaseGetUnContiguousTensors", "NnopbaseGetViewCopyExecutor",
    "NnopbaseReleaseRefContiguousTensors", "NnopbaseSetHcclServerType",
    "NnopbaseSetHcclServerTypeList", "NnopbaseSetHcomGroup", "NnopbaseSetMatchArgsFlag",
    "NnopbaseSetMc2", "NnopbaseSetUnContExecutor", "NnopbaseSetUserHandle",
    "NnopbaseSetViewCopyExecutor",
)  # fmt: skip
DIRECT = f"""
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
GIVING = ("NnopbaseGet", "NnopbaseRelease")
def call(name):
    place = ctypes.c_void_p(1)
    outputs = ctypes.byref(place) if name.startswith(GIVING) else None
    return library[name](None, outputs, 0, 0, 0), place.value
print([n for n in {HELD_IN_AN_EXECUTOR!r} if call(n)[0] == 0])
print([n for n in {ACCEPTED!r} if n.startswith(GIVING) and call(n) != (0, None)])
for name in {ACCEPTED!r}:
    call(name)
library.NnopbaseGetUserHandle.restype = library.NnopbaseGetApiFunc.restype = ctypes.c_void_p
library.NnopbaseMatchArgs.restype = ctypes.c_bool
print(library.NnopbaseGetUserHandle(None), library.NnopbaseMatchArgs(None, None))
print(library.NnopbaseGetApiFunc(b"NoSuchFunction"), bool(library.NnopbaseGetApiFunc(b"malloc")))
"""


@needs_simulator
def test_functions_of_generated_code_refuse_or_accept_without_an_executor():
    library = bundled_simulator() / "lib64" / "libnnopbase.so"
    outcome = subprocess.run(
        [sys.executable, "-c", DIRECT, str(library)], capture_output=True, text=True, check=True
    )
    assert outcome.stdout.splitlines() == ["[]", "[]", "None False", "None True"]
