"""Builds packages of custom operators as `msopgen` projects do: what CANN's generator writes for an
operator, a library of it, and the folders around them. The generated form is written here in our
own words, from the interface that such files declare.

A parameter is spelled by its name and marks: `bias?` may be null, `xs*` is a list, `x!` keeps its
strides, `x&` is written too. An attribute has a type: `eps:float`, `axes?:ints`, `mode:text`.
"""

import atexit
import functools
import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.simulator import compiled

LIBRARY = "libcust_opapi.so"
SOC_910B = 2

_DECLARATIONS = """
#include <string.h>
#include "graph/types.h"
#include "aclnn_@SNAKE@.h"
namespace {
struct NnopbaseDfxId { uint32_t id; const char *funcName; bool hasReg; };
struct TensorDesc { ge::DataType dtype; ge::Format format; };
struct SupportInfo {
  TensorDesc *inputs; size_t inputsNum; TensorDesc *outputs; size_t outputsNum;
};
struct OpSocSupportInfo { SupportInfo *supportInfo; size_t num; };
struct OpSupportList { OpSocSupportInfo *socSupportInfo; size_t num; };
enum NnopbaseAttrDtype { kNnopbaseBool, kNnopbaseFloat, kNnopbaseInt, kNnopbaseString };
}
extern void NnopbaseOpLogE(const aclnnStatus code, const char *const expr);
extern "C" {
aclnnStatus NnopbaseCreateExecutorSpace(void **);
void *NnopbaseGetExecutor(void *, const char *, char *, uint32_t, char *, uint32_t, char *,
                          uint32_t);
aclnnStatus NnopbaseAddInput(void *, const aclTensor *, const uint32_t);
aclnnStatus NnopbaseAddIgnoreContinuesInput(void *, const aclTensor *, const uint32_t);
aclnnStatus NnopbaseAddOutput(void *, const aclTensor *, const uint32_t);
aclnnStatus NnopbaseAddDynamicInput(void *, const aclTensorList *, const uint32_t);
aclnnStatus NnopbaseAddDynamicOutput(void *, const aclTensorList *, const uint32_t);
aclnnStatus NnopbaseAddAttrWithDtype(void *, void *, size_t, const size_t, const NnopbaseAttrDtype);
aclnnStatus NnopbaseAddIntArrayAttr(void *, const aclIntArray *, const size_t);
aclnnStatus NnopbaseAddArrayAttrWithDtype(void *, void *, const size_t, const size_t, const size_t,
                                          const NnopbaseAttrDtype);
uint64_t NnopbaseMsprofSysTime();
aclnnStatus NnopbaseAddTilingId(void *, NnopbaseDfxId *);
void NnopbaseReportApiInfo(const uint64_t, NnopbaseDfxId &);
aclnnStatus NnopbaseRunForWorkspace(void *, uint64_t *);
aclnnStatus NnopbaseRunWithWorkspace(void *, aclrtStream, void *, uint64_t);
aclnnStatus NnopbaseAddSupportList(void *, OpSupportList *, uint32_t *, size_t);
aclnnStatus NnopbaseSetRef(void *, const size_t, const size_t);
aclnnStatus __attribute__((weak)) NnopbaseAddParamName(void *, const uint32_t, const char *,
                                                       const bool);
aclnnStatus __attribute__((weak)) NnopbaseNotInThisVersion(void *);
}
#define OK_OR_RETURN(v) do { aclnnStatus s = (v); \\
  if (s) { NnopbaseOpLogE(s, #v); return s; } } while (0)
#define NOT_NULL(v) do { \\
  if ((v) == nullptr) { NnopbaseOpLogE(161001, #v " != nullptr"); return 161001; } } while (0)
"""
_C_TYPES = {
    "float": "double", "int": "int64_t", "bool": "bool", "text": "char *",
    "ints": "const aclIntArray *",
}  # fmt: skip


@dataclass(frozen=True)
class Operator:
    """An operator's definition; a row of `supports` has dtypes of the inputs and outputs."""

    type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[str, ...] = ()
    supports: tuple[tuple[str, ...], ...] = ()
    socs: tuple[int, ...] = (SOC_910B,)

    @property
    def snake(self) -> str:
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.type).lower()

    @property
    def api(self) -> str:
        return f"aclnn{self.type}"


ADD = Operator("AddCustom", ("x", "y"), ("out",), supports=(("FLOAT",) * 3, ("FLOAT16",) * 3))


def plain(parameter: str) -> str:
    """A parameter's or attribute's C name."""
    return parameter.partition(":")[0].rstrip("?*!&") + ("Ref" if "&" in parameter else "")


def _declared(op: Operator) -> list[str]:
    """C parameters in the header's order: inputs, attributes, outputs that are no inputs."""
    kinds = ["const aclTensorList *" if "*" in p else "const aclTensor *" for p in op.inputs]
    parameters = [f"{k}{plain(p)}" for k, p in zip(kinds, op.inputs, strict=True)]
    for attribute in op.attributes:
        spelled = _C_TYPES[attribute.partition(":")[2]]
        parameters.append(f"{spelled}{'' if spelled.endswith('*') else ' '}{plain(attribute)}")
    for output in op.outputs:
        if "&" not in output:
            kind = "const aclTensorList *" if "*" in output else "const aclTensor *"
            parameters.append(f"{kind}{plain(output)}")
    return [*parameters, "uint64_t *workspaceSize", "aclOpExecutor **executor"]


def header(op: Operator) -> str:
    """`aclnn_<operator>.h`."""
    visible = '__attribute__((visibility("default")))'
    return (
        f'#pragma once\n#include "aclnn/acl_meta.h"\n#ifdef __cplusplus\nextern "C" {{\n#endif\n'
        f"/* {op.api}GetWorkspaceSize: phase one */\n{visible}\naclnnStatus "
        f"{op.api}GetWorkspaceSize(\n    {(',' + chr(10) + '    ').join(_declared(op))});\n"
        f"{visible}\naclnnStatus {op.api}(void *workspace, uint64_t workspaceSize,\n"
        "    aclOpExecutor *executor, aclrtStream stream);\n#ifdef __cplusplus\n}\n#endif\n"
    )


def _supports(op: Operator) -> str:
    lines, rows = [], []
    for i, dtypes in enumerate(op.supports):
        descs = [f"{{ge::DT_{d}, ge::FORMAT_ND}}" for d in dtypes]
        count = len(op.inputs)
        lines.append(f"TensorDesc in{i}[] = {{{', '.join(descs[:count])}}};")
        lines.append(f"TensorDesc out{i}[] = {{{', '.join(descs[count:])}}};")
        rows.append(f"{{in{i}, {count}, out{i}, {len(descs) - count}}}")
    soc = f"OpSocSupportInfo soc = {{rows, {len(rows)}}};"
    lists = ", ".join(["soc"] * len(op.socs))
    return "\n".join([
        "namespace {", *lines, f"SupportInfo rows[] = {{{', '.join(rows)}}};", soc,
        f"OpSocSupportInfo socs[] = {{{lists}}};",
        f"OpSupportList supports = {{socs, {len(op.socs)}}};",
        f"uint32_t socNumbers[] = {{{', '.join(map(str, op.socs))}}};", "}",
    ])  # fmt: skip


def _marks(parameters: tuple[str, ...]) -> str:
    return ", ".join("2" if "*" in p else "0" if "?" in p else "1" for p in parameters)


def _additions(op: Operator) -> list[str]:
    """Statements that hand every parameter over."""
    calls = []
    for i, p in enumerate(op.inputs):
        kind = "Dynamic" if "*" in p else "IgnoreContinues" if "!" in p else ""
        calls.append(f"NnopbaseAdd{kind}Input(*executor, {plain(p)}, {i})")
    for i, a in enumerate(op.attributes):
        calls.append(_attribute(plain(a), a.partition(":")[2], i))
    for i, p in enumerate(op.outputs):
        calls.append(
            f"NnopbaseAdd{'Dynamic' if '*' in p else ''}Output(*executor, {plain(p)}, {i})"
        )
    for i, p in enumerate(op.inputs):
        if "&" in p:
            calls.append(f"NnopbaseSetRef(*executor, {i}, {op.outputs.index(p)})")
    return [f"OK_OR_RETURN({call});" for call in calls]


def _attribute(name: str, kind: str, index: int) -> str:
    if kind == "ints":
        return f"NnopbaseAddIntArrayAttr(*executor, {name}, {index})"
    if kind == "text":
        return (f"NnopbaseAddAttrWithDtype(*executor, {name}, strlen({name}) + 1, {index}, "
                "kNnopbaseString)")  # fmt: skip
    if kind == "float":
        return (f"[&] {{ float f = {name}; return NnopbaseAddAttrWithDtype(*executor, &f, 4, "
                f"{index}, kNnopbaseFloat); }}()")  # fmt: skip
    size, dtype = {"int": (8, "Int"), "bool": (1, "Bool")}[kind]
    return f"NnopbaseAddAttrWithDtype(*executor, &{name}, {size}, {index}, kNnopbase{dtype})"


def source(op: Operator) -> str:
    """`aclnn_<operator>.cpp`."""
    required = [plain(p) for p in (*op.inputs, *op.outputs) if "?" not in p]
    checks = [f"NOT_NULL({name});" for name in dict.fromkeys(required)]
    attributes = f"char attributes[] = {{{_marks(op.attributes)}}};" if op.attributes else \
        "char attributes[1] = {0};"  # fmt: skip
    parameters = ",\n    ".join(_declared(op))
    body = "\n  ".join([
        'static NnopbaseDfxId id = {0x60000, __func__, false};',
        "uint64_t begin = NnopbaseMsprofSysTime();", "static void *space = nullptr;",
        f"char inputs[] = {{{_marks(op.inputs)}}};", f"char outputs[] = {{{_marks(op.outputs)}}};",
        attributes, *checks,
        "if (!space) OK_OR_RETURN(NnopbaseCreateExecutorSpace(&space));",
        f'void *made = NnopbaseGetExecutor(space, "{op.type}", inputs, sizeof inputs, outputs, '
        f"sizeof outputs, attributes, {len(op.attributes)});",
        "NOT_NULL(made);", "NOT_NULL(executor);",
        "*executor = reinterpret_cast<aclOpExecutor *>(made);",
        "OK_OR_RETURN(NnopbaseAddTilingId(*executor, &id));", *_additions(op),
        f"OK_OR_RETURN(NnopbaseAddSupportList(*executor, &supports, socNumbers, {len(op.socs)}));",
        "OK_OR_RETURN(NnopbaseRunForWorkspace(*executor, workspaceSize));",
        "NnopbaseReportApiInfo(begin, id);", "return 0;",
    ])  # fmt: skip
    return (
        f"{_DECLARATIONS.replace('@SNAKE@', op.snake)}{_supports(op)}\n"
        f'extern "C" {{\naclnnStatus {op.api}GetWorkspaceSize(\n    {parameters})\n'
        f"{{\n  {body}\n}}\n"
        f"aclnnStatus {op.api}(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,\n"
        "                     aclrtStream stream)\n{\n"
        "  return NnopbaseRunWithWorkspace(executor, stream, workspace, workspaceSize);\n}\n}\n"
    )


@functools.cache
def _scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="custom-packages-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def library(*ops: Operator, extra: str = "", linked: bool = True) -> Path:
    """A compiled library of the operators, made once; `extra` is C++ that is compiled too, and
    without `linked` it names no library that it needs."""
    folder = Path(tempfile.mkdtemp(dir=_scratch()))
    sources = []
    for op in ops:
        (folder / f"aclnn_{op.snake}.h").write_text(header(op))
        sources.append(folder / f"aclnn_{op.snake}.cpp")
        sources[-1].write_text(source(op))
    if extra:
        sources.append(folder / "extra.cpp")
        sources[-1].write_text(extra)
    lib, cann = folder / LIBRARY, compiled.install()
    needs = [f"-L{cann / 'lib64'}", "-Wl,--no-as-needed", "-lascendcl", "-lnnopbase"]
    command = [compiled.compiler(), "-shared", "-fPIC", "-w", f"-I{cann / 'include'}",
               *map(str, sources), *(needs if linked else ()), "-o", str(lib)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return lib


def package(
    root: Path, *ops: Operator, extra: str = "", linked: bool = True, soc: str = "ascend910b"
) -> Path:
    """A whole package at `root`, as its installer leaves it; `root` is `…/vendors/<name>`."""
    lib, include = root / "op_api/lib", root / "op_api/include"
    tbe = root / "op_impl/ai_core/tbe"
    for folder in (lib, include, tbe / "config" / soc, tbe / "kernel" / soc):
        folder.mkdir(parents=True)
    shutil.copyfile(library(*ops, extra=extra, linked=linked), lib / LIBRARY)
    infos = {}
    for op in ops:
        (include / f"aclnn_{op.snake}.h").write_text(header(op))
        infos[op.type] = {"opFile": {"value": op.snake}}
        kernel = tbe / "kernel" / soc / op.snake
        kernel.mkdir()
        (kernel / f"{op.type}_0.o").write_bytes(b"\x7fELF kernel")
    (tbe / "config" / soc / f"aic-{soc}-ops-info.json").write_text(json.dumps(infos))
    (root / "version.info").write_text("custom_opp_compiler_version=9.1.0\n")
    return root
