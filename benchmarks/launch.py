"""Times one launch of aclnnAdd in several ways, side by side in one run, on the simulator.

Ways: plain C++ compiled here, these bindings, plain ctypes, cffi in ABI mode; each makes the same
calls: three descriptors and a scalar, both phases, and their release. Empty tensors make the kernel
a no-op, so what is timed is the cost of calling. `python benchmarks/launch.py [--numel N]
[--best]`; `--best` takes the quickest of many short rounds, which a busy machine disturbs least.
"""

import argparse
import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cffi

import aclnn_bindings
from aclnn_bindings import (
    Block,
    Cann,
    Plan,
    ScalarSpec,
    TensorSpec,
    ffi,
    launch,
    launch_into,
    lib,
)

FLOAT, ND = 0, 2  # aclDataType and aclFormat of acl_base.h, as any program would write them
ROUNDS = 15
OURS = "bindings: launch_into"  # the line that the aims are about
NAMED, AIM_NAMED = "bindings: cann.ops.aclnnAdd(...)", 1500.0
AIM_RATIO, AIM_EXTRA, AIM_CTYPES = 1.3, 400.0, 15.0

CPP = r"""
#include <acl/acl.h>
#include <aclnnop/aclnn_add.h>
#include <chrono>
extern "C" double launch_many(long n, int64_t numel, void *a, void *b, void *c, aclrtStream s) {
  const int64_t dims[] = {numel}, strides[] = {1};
  const auto start = std::chrono::steady_clock::now();
  for (long k = 0; k < n; ++k) {
    double one = 1.0;
    aclTensor *x = aclCreateTensor(dims, 1, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, dims, 1, a);
    aclTensor *y = aclCreateTensor(dims, 1, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, dims, 1, b);
    aclTensor *z = aclCreateTensor(dims, 1, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, dims, 1, c);
    aclScalar *alpha = aclCreateScalar(&one, ACL_DOUBLE);
    uint64_t size = 0;
    aclOpExecutor *executor = nullptr;
    if (aclnnAddGetWorkspaceSize(x, y, alpha, z, &size, &executor)) return -1;
    if (aclnnAdd(nullptr, size, executor, s)) return -1;
    aclDestroyScalar(alpha);
    aclDestroyTensor(z);
    aclDestroyTensor(y);
    aclDestroyTensor(x);
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  return spent.count();
}
// The bindings' own launch, without Python.
using Launch = uint64_t (*)(uint64_t, uint64_t, const uint64_t *, uint64_t, uint64_t);
extern "C" double launch_ours(long n, Launch launch, uint64_t plan, uint64_t stream, uint64_t a,
                              uint64_t b, uint64_t c, uint64_t session) {
  const uint64_t given[] = {a, b, c};
  const auto start = std::chrono::steady_clock::now();
  for (long k = 0; k < n; ++k)
    if (!launch(plan, stream, given, 3, session)) return -1;
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  return spent.count();
}
"""

CDEF = """
void *aclCreateTensor(const int64_t *, uint64_t, int, const int64_t *, int64_t, int,
                      const int64_t *, uint64_t, void *);
void *aclCreateScalar(void *, int);
int aclDestroyTensor(void *);
int aclDestroyScalar(void *);
int aclnnAddGetWorkspaceSize(void *, void *, void *, void *, uint64_t *, void **);
int aclnnAdd(void *, uint64_t, void *, void *);
"""

Timed = Callable[[int], float]


class Case:
    """The operands of the benchmark: three contiguous float vectors on one stream."""

    def __init__(self, cann: Cann, numel: int) -> None:
        self.cann, self.numel = cann, numel
        self.spec = TensorSpec.of((numel,))
        self.tensors = [cann.empty((max(numel, 1),)) for _ in range(3)]
        self.addresses = [tensor.address for tensor in self.tensors]
        self.plans: list[Plan] = []  # kept, as the timed loops only use their addresses
        self.stream = cann.runtime.current_stream()
        lib_dir = cann.install.root / "lib64"
        self.libraries = [str(lib_dir / name) for name in ("libnnopbase.so", "libopapi.so")]
        self.include = str(cann.install.root / "include")


def loop(body: Callable[[], object]) -> Timed:
    """`body` in a bare loop."""

    def run(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            body()
        return time.perf_counter() - start

    return run


@contextmanager
def compiled(case: Case) -> Iterator[tuple[Timed, Timed]]:
    """Plain C++, and the bindings' launch from C++."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        sys.exit("benchmarks/launch.py needs a C++ compiler for the line to compare with")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "plain.cpp"), Path(folder, "plain.so")
        source.write_text(CPP)
        libraries = [*case.libraries, str(Path(case.libraries[0]).with_name("libascendcl.so"))]
        command = [compiler, "-O2", "-shared", "-fPIC", f"-I{case.include}", str(source)]
        command.append(f"-Wl,-rpath,{Path(case.libraries[0]).parent}")
        subprocess.run([*command, *libraries, "-o", str(target)], check=True)
        library = ctypes.CDLL(str(target))
        plain, ours = library.launch_many, library.launch_ours
        plain.restype = ours.restype = ctypes.c_double
        plain.argtypes = [ctypes.c_long, ctypes.c_int64] + [ctypes.c_void_p] * 4
        ours.argtypes = [ctypes.c_long, ctypes.c_void_p] + [ctypes.c_uint64] * 6
        plan = case.cann.op("aclnnAdd").plan(case.spec, case.spec, ScalarSpec(1.0), case.spec)
        case.plans.append(plan)
        entry = int(ffi.cast("uintptr_t", ffi.addressof(lib, "mt_launch")))
        fixed = (plan.address, case.stream.address, *case.addresses, int(lib.mt_session()))
        yield (
            lambda n: float(plain(n, case.numel, *case.addresses, case.stream.handle)),
            lambda n: float(ours(n, entry, *fixed)),
        )


def bindings_into(case: Case) -> Timed:
    """One mt_run3: the output is given, as in plain C++."""
    plan = case.cann.op("aclnnAdd").plan(case.spec, case.spec, ScalarSpec(1.0), case.spec)
    case.plans.append(plan)
    run, stream, address = lib.mt_run3, case.stream.address, plan.address
    a, b, c = case.addresses

    def timed(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            run(address, stream, a, b, c)
        return time.perf_counter() - start

    return timed


def bindings_allocating(case: Case) -> Timed:
    """One mt_run2 that allocates the output, and the mt_free of it."""
    plan = case.cann.op("aclnnAdd").plan(
        case.spec, case.spec, ScalarSpec(1.0), case.spec, allocate=("out",)
    )
    case.plans.append(plan)
    run, free, stream, address = lib.mt_run2, lib.mt_free, case.stream.address, plan.address
    a, b, _ = case.addresses

    def timed(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            free(run(address, stream, a, b))
        return time.perf_counter() - start

    return timed


def bindings_blocks_into(case: Case) -> Timed:
    """One call that takes Blocks, the output's too, as in plain C++."""
    plan = case.cann.op("aclnnAdd").plan(case.spec, case.spec, ScalarSpec(1.0), case.spec)
    case.plans.append(plan)
    stream, address, session = case.stream.address, plan.address, int(lib.mt_session())
    a, b, c = (Block(int(lib.mt_alloc(stream, 64)), 64, session) for _ in range(3))

    def timed(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            launch_into(address, stream, a, b, c)
        return time.perf_counter() - start

    return timed


def bindings_blocks(case: Case) -> Timed:
    """One call that takes Blocks and makes the output's, and its release as it dies."""
    plan = case.cann.op("aclnnAdd").plan(
        case.spec, case.spec, ScalarSpec(1.0), case.spec, allocate=("out",)
    )
    case.plans.append(plan)
    stream, address, session = case.stream.address, plan.address, int(lib.mt_session())
    a, b = (Block(int(lib.mt_alloc(stream, 64)), 64, session) for _ in range(2))

    def timed(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            launch(address, stream, 64, session, a, b)
        return time.perf_counter() - start

    return timed


def bindings_plan(case: Case) -> Timed:
    plan = case.cann.op("aclnnAdd").plan(case.spec, case.spec, ScalarSpec(1.0), case.spec)
    return loop(lambda: plan.launch(case.stream, case.addresses))


def bindings_by_name(case: Case) -> Timed:
    """A repeated call with keywords; the tensors have `numel` elements as everywhere."""
    a, b, c = (tensor.view((case.numel,), (1,)) for tensor in case.tensors)
    add = case.cann.ops.aclnnAdd

    def timed(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            add(self=a, other=b, alpha=1.0, out=c)
        return time.perf_counter() - start

    return timed


def plain_ctypes(case: Case) -> Timed:
    c, void = ctypes, ctypes.c_void_p
    base, ops = (c.CDLL(path) for path in case.libraries)
    longs, size_t = c.POINTER(c.c_int64), c.c_uint64
    make, scalar = base.aclCreateTensor, base.aclCreateScalar
    make.restype = scalar.restype = void
    make.argtypes = [longs, size_t, c.c_int, longs, c.c_int64, c.c_int, longs, size_t, void]
    scalar.argtypes = [void, c.c_int]
    base.aclDestroyTensor.argtypes = base.aclDestroyScalar.argtypes = [void]
    first, second = ops.aclnnAddGetWorkspaceSize, ops.aclnnAdd
    first.argtypes = [void] * 4 + [c.POINTER(size_t), c.POINTER(void)]
    second.argtypes = [void, size_t, void, void]

    def one() -> None:
        dims, strides, one = (c.c_int64 * 1)(case.numel), (c.c_int64 * 1)(1), c.c_double(1.0)
        made = [make(dims, 1, FLOAT, strides, 0, ND, dims, 1, at) for at in case.addresses]
        alpha = scalar(c.byref(one), 11)
        size, executor = size_t(), void()
        assert first(made[0], made[1], alpha, made[2], c.byref(size), c.byref(executor)) == 0
        assert second(None, size, executor, case.stream.handle) == 0
        base.aclDestroyScalar(alpha)
        for tensor in made:
            base.aclDestroyTensor(tensor)

    return loop(one)


def cffi_abi(case: Case) -> Timed:
    ffi = cffi.FFI()
    ffi.cdef(CDEF)
    base: Any
    ops: Any
    base, ops = (ffi.dlopen(path) for path in case.libraries)
    stream = ffi.cast("void *", case.stream.handle)
    data = [ffi.cast("void *", at) for at in case.addresses]

    def one() -> None:
        dims, strides = ffi.new("int64_t[]", [case.numel]), ffi.new("int64_t[]", [1])
        made = [base.aclCreateTensor(dims, 1, FLOAT, strides, 0, ND, dims, 1, at) for at in data]
        alpha = base.aclCreateScalar(ffi.new("double *", 1.0), 11)
        size, executor = ffi.new("uint64_t *"), ffi.new("void **")
        assert ops.aclnnAddGetWorkspaceSize(*made[:2], alpha, made[2], size, executor) == 0
        assert ops.aclnnAdd(ffi.NULL, size[0], executor[0], stream) == 0
        base.aclDestroyScalar(alpha)
        for tensor in made:
            base.aclDestroyTensor(tensor)

    return loop(one)


def quickest(ways: dict[str, Timed], seconds: float) -> dict[str, float]:
    """ns per launch of each way in the quickest of many rounds of 300."""
    rounds = max(20, int(seconds / len(ways) / 2e-3))
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            best[name] = min(best[name], way(300) / 300 * 1e9)
    return best


def measure(ways: dict[str, Timed], seconds: float) -> dict[str, float]:
    """Median ns per launch of each way; rounds are interleaved so that noise hits all alike."""
    counts = {name: max(20, int(seconds / ROUNDS / max(way(50) / 50, 1e-9)))
              for name, way in ways.items()}  # fmt: skip
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            spent[name].append(way(counts[name]) / counts[name] * 1e9)
    return {name: statistics.median(values) for name, values in spent.items()}


def show(found: dict[str, float]) -> bool:
    """Print the table and the aims; whether all are met."""
    plain, ours = found["plain C++"], found[OURS]
    slowest = found["plain ctypes"]
    print(f"{'way':<36}{'ns/launch':>12}{'x C++':>10}{'ctypes /':>10}")
    for name, ns in found.items():
        print(f"{name:<36}{ns:>12.0f}{ns / plain:>10.2f}{slowest / ns:>10.1f}")
    bound = AIM_RATIO * plain + AIM_EXTRA
    met = ours <= bound, slowest / ours >= AIM_CTYPES
    print(f"aim: at most 1.3 x C++ + 400 ns = {bound:.0f} ns: {'met' if met[0] else 'missed'}")
    print(f"aim: 15 x less than ctypes: {slowest / ours:.1f} x, {'met' if met[1] else 'missed'}")
    named = found[NAMED] <= AIM_NAMED
    print(f"aim: a call by keyword of at most {AIM_NAMED:.0f} ns: {'met' if named else 'missed'}")
    return all(met) and named


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--numel", type=int, default=0, help="elements; 0 makes a no-op kernel")
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each way")
    parser.add_argument("--best", action="store_true", help="the quickest round, not the median")
    options = parser.parse_args()
    os.environ.setdefault("ACLSIM_STREAM", "inline")
    with aclnn_bindings.open(simulator=True) as cann:
        case = Case(cann, options.numel)
        with compiled(case) as (cpp, ours):
            ways = {
                "plain C++": cpp,
                "bindings: mt_launch, from C++": ours,
                OURS: bindings_blocks_into(case),
                "bindings: launch, output made": bindings_blocks(case),
                "bindings: mt_run3": bindings_into(case),
                "bindings: mt_run2 + mt_free": bindings_allocating(case),
                "bindings: Plan.launch": bindings_plan(case),
                NAMED: bindings_by_name(case),
                "cffi, ABI mode": cffi_abi(case),
                "plain ctypes": plain_ctypes(case),
            }
            show((quickest if options.best else measure)(ways, options.seconds))


if __name__ == "__main__":
    main()
