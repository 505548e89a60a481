"""Builds small installs laid out like CANN's, from the catalog's types and a C runtime of 60 lines.

They stand in for vendor installs that are broken in ways that the simulator cannot be; nothing here
computes more than the smoke test asks for.
"""

import atexit
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from aclnn_bindings.diagnose import smoke
from aclnn_bindings.interface import catalog
from aclnn_bindings.interface.signature import Declarations, Signature

VERSION = "8.1.RC1"
OPS = ("aclnnAdd", "aclnnMul", "aclnnMatmul", "aclnnIndexPutImpl")
OPAQUE = ("aclTensor", "aclScalar", "aclOpExecutor", "aclTensorList")

# What the bindings call beyond the smoke test.
MORE = (
    "aclrtSynchronizeDevice",
    "aclrtGetCurrentContext",
    "aclrtSetCurrentContext",
    "aclrtMemcpyAsync",
    "aclrtStreamWaitEvent",
    "aclrtStreamQuery",
    "aclrtQueryEventStatus",
    "aclrtMallocHost",
    "aclrtFreeHost",
    "aclrtCreateEventExWithFlag",
    "aclrtSynchronizeEvent",
    "aclrtSynchronizeStreamWithTimeout",
    "aclrtMemsetAsync",
)

RUNTIME = r"""
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char current;
int aclInit(const char *p) { (void)p; ON_INIT; return 0; }
int aclFinalize(void) { return 0; }
int aclrtGetDeviceCount(uint32_t *n) { *n = DEVICES; return 0; }
int aclrtSetDevice(int32_t d) { (void)d; return DEVICES ? 0 : 107001; }
int aclrtResetDevice(int32_t d) { (void)d; return 0; }
const char *aclrtGetSocName(void) { return SOC; }
int aclrtGetMemInfo(int a, size_t *f, size_t *t)
{ (void)a; *f = 60ull << 30; *t = 64ull << 30; return MEM_CODE; }
int aclrtCreateStream(void **s) { *s = malloc(1); return 0; }
int aclrtDestroyStream(void *s) { free(s); return 0; }
int aclrtCreateEvent(void **e) { *e = malloc(1); return 0; }
int aclrtRecordEvent(void *e, void *s) { (void)e; (void)s; return 0; }
int aclrtDestroyEvent(void *e) { free(e); return 0; }
int aclrtSynchronizeStream(void *s) { (void)s; return 0; }
int aclrtMalloc(void **p, size_t n, int q) { (void)q; *p = malloc(n); return 0; }
int aclrtFree(void *p) { free(p); return 0; }
int aclrtMemcpy(void *d, size_t m, const void *s, size_t n, int k)
{ (void)m; (void)k; memcpy(d, s, n); return 0; }
int aclrtSynchronizeDevice(void) { return 0; }
int aclrtGetCurrentContext(void **c) { *c = &current; return 0; }
int aclrtSetCurrentContext(void *c) { (void)c; return 0; }
int aclrtMemcpyAsync(void *d, size_t m, const void *s, size_t n, int k, void *stream)
{ (void)m; (void)k; (void)stream; memcpy(d, s, n); return 0; }
int aclrtStreamWaitEvent(void *s, void *e) { (void)s; (void)e; return 0; }
int aclrtStreamQuery(void *s, int *state) { (void)s; *state = 0; return 0; }
int aclrtQueryEventStatus(void *e, int *state) { (void)e; *state = 1; return 0; }
int aclrtMallocHost(void **p, size_t n) { *p = malloc(n); return 0; }
int aclrtFreeHost(void *p) { free(p); return 0; }
int aclrtCreateEventExWithFlag(void **e, uint32_t f) { (void)f; *e = malloc(1); return 0; }
int aclrtSynchronizeEvent(void *e) { (void)e; return 0; }
int aclrtSynchronizeStreamWithTimeout(void *s, int ms) { (void)s; (void)ms; return 0; }
int aclrtMemsetAsync(void *d, size_t m, int v, size_t n, void *s)
{ (void)m; (void)s; memset(d, v, n); return 0; }
const char *aclGetRecentErrMsg(void) { return "EZ1001: the fake is broken on purpose"; }
"""

DESCRIPTORS = r"""
#include <stdint.h>
#include <stdlib.h>
void *aclCreateTensor(const int64_t *v, uint64_t n, int t, const int64_t *st, int64_t o, int f,
                      const int64_t *sd, uint64_t m, void *data)
{ (void)v; (void)n; (void)t; (void)st; (void)o; (void)f; (void)sd; (void)m; return data; }
int aclDestroyTensor(const void *t) { (void)t; return 0; }
void *aclCreateScalar(void *v, int t)
{ float *s = malloc(sizeof(float)); *s = t == 11 ? *(double *)v : *(float *)v; return s; }
int aclDestroyScalar(const void *s) { free((void *)s); return 0; }
"""

ADD = r"""
#include <stdint.h>
static const float *a, *b; static float alpha, *c;
int aclnnAddGetWorkspaceSize(const void *x, const void *y, const void *s, void *z, uint64_t *n,
                             void **e)
{ a = x; b = y; alpha = *(const float *)s; c = z; *n = 64; *e = &a; return ADD_CODE; }
int aclnnAdd(void *w, uint64_t n, void *e, void *s)
{ (void)w; (void)n; (void)e; (void)s;
  for (int i = 0; i < 6; i++) c[i] = a[i] + alpha * b[i]; return 0; }
"""

DEFAULTS = {"ON_INIT": "", "DEVICES": "2", "ADD_CODE": "0", "MEM_CODE": "0", "SOC": '"Ascend910B3"'}


def functions(ops: Iterable[str]) -> list[str]:
    """The functions that a fake declares: the smoke test's and both phases of `ops`."""
    phases = [name for op in ops for name in (op, f"{op}GetWorkspaceSize")]
    return list(dict.fromkeys([*smoke.FUNCTIONS, *MORE, *phases]))


def write_headers(include: Path, ops: Sequence[str] = OPS, version: str = VERSION) -> None:
    """One header per group, as CANN spells them, with the types of the catalog."""
    declared = catalog.load(version)
    text = [
        "#pragma once",
        "#include <stdint.h>",
        "#include <stddef.h>",
        *(f"typedef struct {name} {name};" for name in OPAQUE),
        "typedef void *aclrtStream;",
        "typedef void *aclrtEvent;",
        "typedef void *aclrtContext;",
        "typedef int aclError;",
        "typedef int32_t aclnnStatus;",
        *(_enum(name, declared) for name in _enums(ops, declared)),
        *(_prototype(declared.functions[name]) for name in functions(ops)),
    ]
    (include / "acl").mkdir(parents=True, exist_ok=True)
    (include / "acl" / "acl.h").write_text("\n".join(text) + "\n")


def _enums(ops: Sequence[str], declared: Declarations) -> list[str]:
    signatures = [declared.functions[name] for name in functions(ops)]
    used = {p.type for s in signatures for p in s.params} | {"aclrtMemAttr", "aclrtMemcpyKind"}
    return sorted(used & set(declared.enums))


def _enum(name: str, declared: Declarations) -> str:
    members = ", ".join(f"{k} = {v}" for k, v in declared.enums[name].items())
    return f"typedef enum {name} {{ {members} }} {name};"


def _prototype(signature: Signature) -> str:
    params = ", ".join(f"{p.type} {p.name}" for p in signature.params) or "void"
    return f"{signature.returns} {signature.name}({params});"


def compile_library(
    path: Path, source: str, needed: Sequence[Path] = (), defines: dict[str, str] | None = None
) -> Path:
    """A shared library from C text; `needed` become its DT_NEEDED entries."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unit = path.with_suffix(".c")
    unit.write_text(source)
    macros = [f"-D{k}={v}" for k, v in {**DEFAULTS, **(defines or {})}.items()]
    command = ["gcc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{path.name}", "-o", str(path)]
    links = [str(library) for library in needed]
    subprocess.run([*command, *macros, str(unit), "-Wl,--no-as-needed", *links], check=True)
    unit.unlink()
    return path


def op_source(ops: Iterable[str]) -> str:
    """Both phases of each operator as functions that succeed and do nothing."""
    return "\n".join(
        f"int {name}(void) {{ return 0; }}"
        for op in ops
        if op != "aclnnAdd"
        for name in (op, f"{op}GetWorkspaceSize")
    )


def make_install(
    root: Path,
    ops: Sequence[str] = OPS,
    defines: dict[str, str] | None = None,
    split: bool = False,
    headers: bool = True,
) -> Path:
    """A complete install of version 8.1.RC1 in the single layout, or in the split one."""
    lib = root / "lib64"
    runtime = compile_library(lib / "libascendcl.so", RUNTIME, (), defines)
    base = compile_library(lib / "libnnopbase.so", DESCRIPTORS, (runtime,), defines)
    if split:
        compile_library(lib / "libopapi_math.so", ADD, (base,), defines)
        compile_library(lib / "libopapi_nn.so", op_source(ops), (base,), defines)
    else:
        add = ADD if "aclnnAdd" in ops else ""
        compile_library(lib / "libopapi.so", add + op_source(ops), (base,), defines)
    if headers:
        write_headers(root / "include", ops)
    write_version(root, VERSION)
    return root


def write_version(root: Path, version: str) -> None:
    (root / "version.cfg").write_text(f"runtime_running_version=[7.7.0.1.238:{version}]\n")


def write_kernels(root: Path, soc: str = "ascend910b") -> None:
    """The folder by which built-in kernel binaries are recognised, with one in it."""
    folder = root / "opp/built-in/op_impl/ai_core/tbe/kernel" / soc / "add"
    folder.mkdir(parents=True)
    (folder / "Add_0.o").write_bytes(b"\x7fELF")


def environment(root: Path) -> dict[str, str]:
    """What set_env.sh would export."""
    return {
        "ASCEND_HOME_PATH": str(root),
        "ASCEND_TOOLKIT_HOME": str(root),
        "ASCEND_OPP_PATH": str(root / "opp"),
        "LD_LIBRARY_PATH": str(root / "lib64"),
        "PATH": "/usr/bin:/bin",
    }


def copy(root: Path, to: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(root, to, symlinks=True))


@functools.cache
def whole() -> Path:
    """A complete install with kernels, built once a process; copy it before breaking it."""
    place = tempfile.mkdtemp(prefix="fake-cann-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    root = make_install(Path(place) / VERSION)
    write_kernels(root)
    return root
