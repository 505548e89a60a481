"""Owns writing the install's C headers: only what is exported is declared, in our own words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from .catalog import IMAGES, MAX_WORKSPACE, WORKSPACE, Catalog, CatalogFunction, CatalogParam
from .layout import definition, depends
from .text import C_BANNER, guard, write

# Where constants belong: the catalog gives them without a header. First match wins.
CONSTANT_HOMES = (
    (r"ACL_ERROR_GE_", "acl/error_codes/ge_error_codes.h"),
    (r"ACL_ERROR_(RT|STREAM|SNAPSHOT|HOST_MEMORY)_", "acl/error_codes/rt_error_codes.h"),
    (r"ACL_RT_SUCCESS", "acl/error_codes/rt_error_codes.h"),
    (r"ACL_ERROR_|ACL_SUCCESS", "acl/acl_base_rt.h"),
    (r"ACL_(TENSOR_|UNKNOWN_RANK)", "acl/acl_base_mdl.h"),
    (r"ACL_PROF_", "acl/acl_prof.h"),
    (r"ACL_(MAJOR|MINOR|PATCH)_VERSION", "acl/acl_rt.h"),
    (r"ACL_(EVENT|STREAM|CONTINUE|STOP|NOTIFY|DEV|RT|HOST|MDLRI|IPC|DEVICE|PKG)_", "acl/acl_rt.h"),
    (r"MAX_MEM_|UCE_", "acl/acl_rt.h"),
    (r"ACL_COMPILE_", "acl/acl_op.h"),
    (r"ACLNN_", "aclnn/opdev/op_errno.h"),
    (r"HCCL_|COMM_NAME_", "hccl/hccl_types.h"),
    (r"ACLDVPP_", "acldvppop/acldvpp_base.h"),
)  # fmt: skip
# Core headers in dependency order, with what each includes.
CORE = {
    "acl/error_codes/rt_error_codes.h": (),
    "acl/error_codes/ge_error_codes.h": (),
    "acl/acl_base_rt.h": ("acl/error_codes/rt_error_codes.h", "acl/error_codes/ge_error_codes.h"),
    "acl/acl_base_mdl.h": ("acl/acl_base_rt.h",),
    "acl/acl_base.h": ("acl/acl_base_rt.h", "acl/acl_base_mdl.h"),
    "acl/acl_rt.h": ("acl/acl_base.h",),
    "acl/acl_rt_allocator.h": ("acl/acl_rt.h",),
    "acl/acl_op.h": ("acl/acl_rt.h",),
    "acl/acl_op_compiler.h": ("acl/acl_op.h",),
    "acl/acl_prof.h": ("acl/acl_rt.h",),
    "acl/acl_tdt.h": ("acl/acl_base.h",),
    "acl/acl.h": ("acl/acl_rt.h", "acl/acl_op.h"),
    "aclnn/opdev/op_errno.h": (),
    "aclnn/acl_meta.h": ("acl/acl_rt.h",),
    "aclnn/aclnn_base.h": ("acl/acl_base.h", "aclnn/acl_meta.h"),
    "hccl/hccl_types.h": ("acl/acl_base.h",),
    "hccl/hccl_comm.h": ("hccl/hccl_types.h", "acl/acl_rt.h"),
    "hccl/hccl.h": ("hccl/hccl_comm.h",),
    "acldvppop/acldvpp_base.h": ("aclnn/aclnn_base.h",),
    "acldvppop/acldvpp_init.h": ("acldvppop/acldvpp_base.h",),
}
# Types that a header defines for others to use.
OWN_TYPES = {"acldvppop/acldvpp_base.h": ("acldvppStatus",)}
WORD = re.compile(r"[A-Za-z_]\w*")
VISIBILITY = """#ifndef ACL_FUNC_VISIBILITY
#define ACL_FUNC_VISIBILITY __attribute__((visibility("default")))
#endif
"""
# What headers define rather than declare. A configuration begins with its size, a mark and a
# version (HcclCommConfigInit document and its callers in public clients).
INLINE = {
    "hccl/hccl_comm.h": (
        """#include <string.h>

/* Makes every field of a configuration say "not set". */
static inline void HcclCommConfigInit(HcclCommConfig *config) {
  const struct {
    size_t size;
    uint32_t mark, version;
    uint64_t reserved;
  } head = {sizeof *config, HCCL_COMM_CONFIG_MAGIC_WORD, HCCL_COMM_CONFIG_VERSION, 0};
  if (!config) return;
  memset(config, 0, sizeof *config);
  memcpy(config->reserved, &head, sizeof head);
  config->hcclBufferSize = HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET;
  config->hcclDeterministic = HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET;
  config->hcclOpExpansionMode = HCCL_COMM_DEFAULT_OP_EXPANSION_MODE;
  config->hcclRdmaTrafficClass = HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET;
  config->hcclRdmaServiceLevel = HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET;
}
""",
    )
}
PREAMBLE = """#include <stddef.h>
#include <stdint.h>
#ifndef __cplusplus
#include <stdbool.h>
#endif
"""


class Headers:
    """The tree under `include/`: core headers, then one header per operator file."""

    def __init__(self, catalog: Catalog, exported: Iterable[str], ops: Iterable[str]) -> None:
        self.catalog = catalog
        self.by_header: dict[str, list[CatalogFunction]] = {}
        for name in [
            *exported,
            *(f for op in ops for f in (op + WORKSPACE, op + MAX_WORKSPACE, op)),
        ]:
            function = catalog.functions.get(name)
            if function is not None:
                self.by_header.setdefault(function.header, []).append(function)
        self.homes: dict[str, list[str]] = self._type_homes()

    def write(self, folder: Path, simulated: frozenset[str]) -> list[str]:
        """Write every header; `simulated` functions really work, others are marked as refusing."""
        paths = []
        for header in CORE:
            write(folder / header, self._core(header, simulated))
            paths.append(header)
        for header in sorted(set(self.by_header) - set(CORE)):
            write(folder / header, self._operators(header))
            paths.append(header)
        for stale in (folder / "aclnnop").glob("*.h"):
            if f"aclnnop/{stale.name}" not in paths:
                stale.unlink()
        return paths

    def _type_homes(self) -> dict[str, list[str]]:
        """Core header → type names defined there, in an order that satisfies C."""
        homes: dict[str, list[str]] = {header: [] for header in CORE}
        placed: set[str] = set()
        for header in CORE:
            enums = [n for n, e in self.catalog.enums.items() if e[0] == header]
            enums += [n for n, s in self.catalog.structs.items() if s[0] == header]
            enums += OWN_TYPES.get(header, ())
            for function in self.by_header.get(header, ()):
                text = " ".join([function.returns, *(p.type for p in function.params)])
                enums += WORD.findall(text)
            for name in enums:
                self._place(name, homes[header], placed)
        return homes

    def _place(self, name: str, home: list[str], placed: set[str]) -> None:
        known = name in self.catalog.typedefs or name in self.catalog.enums
        if name in placed or not (known or name in self.catalog.structs):
            return
        placed.add(name)
        for needed in depends(self.catalog, name):
            self._place(needed, home, placed)
        home.append(name)

    def _core(self, header: str, simulated: frozenset[str]) -> str:
        parts = [_opening(header), PREAMBLE]
        parts += [f'#include "{include}"\n' for include in CORE[header]]
        if header in ("acl/acl_base_rt.h", "aclnn/opdev/op_errno.h"):
            parts.append(VISIBILITY)
        if constants := self._constants(header):
            parts.append(constants)
        parts.append('#ifdef __cplusplus\nextern "C" {\n#endif\n')
        types = self.homes[header]
        parts += [text for name in types if (text := self._forward(name))]
        parts += [text for name in types if (text := definition(self.catalog, name))]
        for function in sorted(self.by_header.get(header, ()), key=lambda f: f.name):
            parts.append(self._function(function, function.name in simulated))
        parts.append("#ifdef __cplusplus\n}\n#endif\n")
        parts += INLINE.get(header, ())
        return "\n".join(parts) + f"\n#endif  /* {guard(header)} */\n"

    def _constants(self, header: str) -> str:
        lines = []
        if header == "aclnn/opdev/op_errno.h":
            lines.append("typedef int32_t aclnnStatus;")
        for name, value in sorted(self.catalog.constants.items(), key=lambda item: item[1]):
            home = next((h for pattern, h in CONSTANT_HOMES if re.match(pattern, name)), None)
            if home == header:
                lines.append(_constant(header, name, value))
        return "\n".join(lines) + "\n" if lines else ""

    def _forward(self, name: str) -> str:
        """`typedef struct X X;` for a struct or an opaque handle type."""
        target = self.catalog.typedefs.get(name, "")
        if target.startswith(("struct ", "union ")):
            return f"typedef {target} {name};"
        layout = self.catalog.structs.get(name)
        if layout and not any(t == f"{layout[1]} {name}" for t in self.catalog.typedefs.values()):
            return f"typedef {layout[1]} {name} {name};"
        return ""

    def _function(self, function: CatalogFunction, works: bool) -> str:
        note = "" if works else "/* Not simulated: refuses with ACL_ERROR_FEATURE_UNSUPPORTED. */\n"
        if function.name in self.catalog.deprecated:
            note += "/* Deprecated in CANN. */\n"
        texts = [p for p in function.params if p.type == "char *" and p.direction == "o"]
        if texts:  # which way a text goes is nowhere but in such words
            lines = [f" * @param [out] {p.name}: memory for a text" for p in texts]
            note += "\n".join(["/**", *lines, " */"]) + "\n"
        return f"{note}ACL_FUNC_VISIBILITY {function.prototype};\n"

    def _operators(self, header: str) -> str:
        base = "acldvppop/acldvpp_base.h" if header.startswith(IMAGES) else "aclnn/aclnn_base.h"
        parts = [_opening(header), f'#include "{base}"\n']
        functions = self.by_header[header]
        parts += self._operator_enums(header)
        parts.append('#ifdef __cplusplus\nextern "C" {\n#endif\n')
        parts += [_documented(function) for function in functions]
        parts.append("#ifdef __cplusplus\n}\n#endif\n")
        return "\n".join(parts) + f"\n#endif  /* {guard(header)} */\n"

    def _operator_enums(self, header: str) -> list[str]:
        """Enums of operator headers; two headers may use one name, so each is guarded by it."""
        parts = []
        for name, (home, _) in self.catalog.enums.items():
            if home == header and home not in CORE:
                parts.append(definition(self.catalog, name))
        return parts


def _opening(header: str) -> str:
    return f"{C_BANNER}#ifndef {guard(header)}\n#define {guard(header)}\n"


def _constant(header: str, name: str, value: int) -> str:
    if header == "acl/acl_base_rt.h":
        return f"static const int {name} = {value};"
    if header == "acl/error_codes/ge_error_codes.h":
        return f"static const uint32_t {name} = {value}U;"
    suffix = "ULL" if value > 2**63 - 1 else "LL" if value > 2**31 - 1 else ""
    return f"#define {name} {value}{suffix}"


def _documented(function: CatalogFunction) -> str:
    """A prototype under a doxygen block: direction, what it is, dtypes."""
    lines = ["/**"]
    if function.name.endswith(WORKSPACE):
        op = function.name.removesuffix(WORKSPACE)
        lines += [f" * @brief First phase of {op}: checks the arguments and plans the call."]
        lines += [f" * @param {_param_note(p)}" for p in function.params]
        lines.append(" * @return ACL_SUCCESS, 161001 (null), 161002 (not supported), others")
    elif function.params[-1].type != "aclrtStream":  # a function beside operators
        lines += [f" * @brief {function.name}: computed on the host."]
        lines += [f" * @param {_param_note(p)}" for p in function.params]
        lines.append(" * @return ACL_SUCCESS or an error code")
    else:
        lines += [
            f" * @brief Second phase of {function.name}: runs the planned call on the stream.",
            f" * @param [in] {function.params[0].name}: device memory of the size asked for",
            f" * @param [in] {function.params[1].name}: that size, bytes",
            f" * @param [in] {function.params[2].name}: made by the first phase; used up here",
            f" * @param [in] {function.params[3].name}: a stream of the current context",
            " * @return ACL_SUCCESS or an error code",
        ]
    lines.append(" */")
    return "\n".join(lines) + f"\nACL_FUNC_VISIBILITY {function.prototype};\n"


def _param_note(param: CatalogParam) -> str:
    way = {"i": "in", "o": "out", "b": "in,out"}[param.direction]
    what = "device tensor" if "aclTensor" in param.type else "host value"
    if param.type == "uint64_t *" and param.name == "workspaceSize":
        what = "bytes of workspace wanted by the second phase"
    elif param.type == "aclOpExecutor **":
        what = "the planned call"
    note = f"[{way}] {param.name}: {what}"
    if param.optional:
        note += ", may be null"
    if param.dtypes:
        note += ". Data types: " + ", ".join(param.dtypes)
    return note
