"""A small ACL that tests compile: an install whose calls can be counted and made to fail."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from aclnn_bindings.cann import Cann
from aclnn_bindings.install.describe import Install, LibraryFile
from aclnn_bindings.install.versions import Versions
from aclnn_bindings.interface import catalog
from aclnn_bindings.interface.abi import kind_of
from aclnn_bindings.interface.signature import Declarations, Direction, Param, Signature

SOURCE = Path(__file__).with_name("stub.c")
KINDS = (
    "tensor",
    "scalar",
    "array",
    "list",
    "executor",
    "device_memory",
    "stream",
    "event",
    "host_memory",
    "context",
)
_TAIL = "uint64_t *workspaceSize, aclOpExecutor **executor"
_TWO = "void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream"
_FUNCTIONS = {
    "aclnnStubKindsGetWorkspaceSize": (
        "const aclTensor *self, const aclTensorList *tensors, const aclScalarList *scalars, "
        "const aclIntArray *ints, const aclBoolArray *bools, const aclFloatArray *floats, "
        "const char *text, bool flag, int8_t i8, int32_t i32, int64_t i64, uint32_t u32, "
        "uint64_t u64, float f, double d, aclDataType dtype, const aclTensor *maskOptional, "
        f"aclTensor *out, {_TAIL}"
    ),
    "aclnnStubKinds": _TWO,
    "aclnnStubSplitGetWorkspaceSize": f"const aclTensor *self, aclTensorList *out, {_TAIL}",
    "aclnnStubSplit": _TWO,
    "aclnnStubOddGetWorkspaceSize": f"const aclTensor *self, bool *any, int64_t *count, {_TAIL}",
    "aclnnStubOdd": "void *workspace, uint64_t workspaceSize, double scale, "
    "aclOpExecutor *executor, aclrtStream stream",
    "aclnnStubWritesGetWorkspaceSize": f"aclTensor *out, aclIntArray *array, {_TAIL}",
    "aclnnStubWrites": _TWO,
    "aclnnStubNoopGetWorkspaceSize": "const aclTensor *self, const aclTensor *other, "
    f"const aclScalar *alpha, aclTensor *out, {_TAIL}",
    "aclnnStubNoop": _TWO,
    "aclnnStubMissingGetWorkspaceSize": _TAIL,
    "aclnnStubMissing": _TWO,
    "aclnnStubStructGetWorkspaceSize": f"dim3 grid, {_TAIL}",
    "aclnnStubStruct": _TWO,
    "aclnnStubWeightSize": "const aclIntArray *shape, uint64_t *size",
    "aclnnStubRefuse": "int64_t code",
    "stubHalf": "float x",
    "stubMix": "int a, double b, int64_t c, float d, uint8_t e",
    "stubNegative": "",
    "stubNothing": "",
}
_RETURNS = {
    "stubHalf": "float",
    "stubMix": "double",
    "stubNegative": "int8_t",
    "stubNothing": "void",
}


def _param(text: str, known: Declarations) -> Param:
    ctype, _, name = text.rpartition(" ")
    ctype += " " + "*" * name.count("*") if "*" in name else ""
    name = name.lstrip("*")
    kind = kind_of(ctype, known.typedefs, known.enums, known.structs)
    assert kind is not None, text
    output = "*" in ctype and not ctype.startswith("const")
    direction = Direction.OUT if output else Direction.IN
    return Param(name, ctype, kind, direction, optional=name.endswith("Optional"))


def declare() -> Declarations:
    """The newest catalog's types and constants with the stub's own functions added."""
    known = catalog.load("2026-08")
    functions = dict(known.functions)
    for name, text in _FUNCTIONS.items():
        params = tuple(_param(part, known) for part in text.split(", ") if part)
        functions[name] = Signature(name, _RETURNS.get(name, "aclnnStatus"), params, "stub.h", 1)
    return replace(known, functions=functions)


def build(folder: Path) -> Path:
    """Compile the stub into `folder`/lib64; the library's path."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    assert compiler, "the tests of the bindings need a C compiler"
    library = folder / "lib64" / "libascendcl.so"
    library.parent.mkdir(parents=True)
    command = [compiler, "-O1", "-g", "-shared", "-fPIC", "-w", "-pthread", str(SOURCE)]
    command += ["-o", str(library)]
    subprocess.run(command, check=True)
    return library


class Stub:
    """The opened stub and its knobs."""

    def __init__(self, library: Path, declared: Declarations) -> None:
        self._c = ctypes.CDLL(str(library))
        self._c.stub_live.restype = self._c.stub_get.restype = ctypes.c_int64
        self._c.stub_set.argtypes = (ctypes.c_char_p, ctypes.c_int64)
        self._c.stub_init_config.restype = ctypes.c_char_p
        self.library = library
        install = Install(
            library.parent.parent,
            "test",
            "simulator",
            Versions(),
            (),
            (LibraryFile(library, "core"),),
        )
        self.cann = Cann(install, declared)

    def live(self, kind: str) -> int:
        return int(self._c.stub_live(KINDS.index(kind)))

    def descriptors(self) -> dict[str, int]:
        return {kind: self.live(kind) for kind in ("tensor", "list", "executor")}

    def set(self, what: str, value: int) -> None:
        self._c.stub_set(what.encode(), value)

    def get(self, what: str) -> int:
        return int(self._c.stub_get(what.encode()))

    def compile_by(self, function: Callable[[], None] | None) -> None:
        """What phase 1 of aclnnAdd has another thread do; None ends that."""
        entry = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
        self._compiler = entry(lambda _: function() if function else None)
        self._c.stub_compile_by(self._compiler if function else None)

    def config(self) -> str:
        return str(self._c.stub_init_config().decode())

    def reset(self) -> None:
        self.compile_by(None)
        for knob in (
            "fail_init",
            "fail_one",
            "fail_two",
            "fail_malloc",
            "fail_sync",
            "fail_tensor",
            "fail_light",
            "fail_create",
            "fail_device",
        ):
            self.set(knob, 0)
        for knob in ("workspace", "held_device", "counters"):
            self.set(knob, 0)
        self.set("held_events", 0)
        self.set("busy_streams", 0)
        self.set("memory_left", 1 << 40)
