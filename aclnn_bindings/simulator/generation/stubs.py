"""Owns functions that are exported because clients link to them, and refuse when called."""

from __future__ import annotations

from .catalog import MAX_WORKSPACE, WORKSPACE, Catalog, CatalogFunction
from .text import BANNER

# Whole headers whose functions exist in the simulator, working or refusing, by library.
# Model loading, image processing, data queues and BLAS headers are not part of it.
LIBRARIES = {
    "ascendcl": (
        "acl/acl_base_rt.h",
        "acl/acl_base_mdl.h",
        "acl/acl_rt.h",
        "acl/acl_rt_allocator.h",
        "acl/acl_op.h",
        "acl/acl_prof.h",
    ),
    "nnopbase": ("aclnn/acl_meta.h", "aclnn/aclnn_base.h"),
    "acl_op_compiler": ("acl/acl_op_compiler.h",),
    "acl_tdt_channel": ("acl/acl_tdt.h",),
}
# Clients look these up and do without those that are missing: only what works is exported.
OPTIONAL = ("hccl/hccl.h", "hccl/hccl_comm.h", "acldvppop/acldvpp_init.h")


def exported(catalog: Catalog, library: str) -> list[str]:
    """Names of the core functions that the library exports, sorted."""
    homes = LIBRARIES[library]
    return sorted(n for n, f in catalog.functions.items() if f.header in homes)


def collectives(catalog: Catalog, implemented: frozenset[str]) -> list[str]:
    """Names of the functions of libhccl and libacl_dvpp_op that are simulated, sorted."""
    return sorted(
        n for n, f in catalog.functions.items() if f.header in OPTIONAL and n in implemented
    )


def beside_operators(catalog: Catalog, implemented: frozenset[str]) -> list[str]:
    """Names of the simulated functions that headers of operators declare beside them, sorted."""
    return sorted(
        n
        for n, f in catalog.functions.items()
        if f.header.startswith("aclnnop/") and n in implemented
    )


# The libraries of operators by kind, of CANN 8.5 and later.
PARTS = ("math", "nn", "cv", "transformer")


def part(catalog: Catalog, ops: list[str], kind: str) -> str:
    """C of the names that `libopapi_<kind>.so` has; the loader takes them from libopapi.so.

    The library is a filter (DT_FILTER, System V gABI): what it defines is looked up there first.
    """
    library = f"libopapi_{kind}.so"
    names = sorted(
        name
        for name, function in catalog.functions.items()
        if library in catalog.libraries.get(function.header, "").split("|")
        and _operator(name) in ops
    )
    stubs = [f"ACLSIM_STUB int {name}(void) {{ return 561000; }}" for name in names]
    define = '#define ACLSIM_STUB __attribute__((visibility("default")))\n'
    return "\n".join([BANNER, define, *stubs, ""])


def _operator(name: str) -> str:
    for suffix in (MAX_WORKSPACE, WORKSPACE):
        name = name.removesuffix(suffix)
    return name


def refusals(catalog: Catalog, library: str, implemented: frozenset[str]) -> str:
    """C++ of every exported function of the library that the simulator does not implement."""
    names = [n for n in exported(catalog, library) if n not in implemented]
    functions = [catalog.functions[n] for n in names]
    headers = sorted({f.header for f in functions})
    parts = [BANNER, '#include "ascendcl/refuse.h"\n']
    parts += [f"#include <{h}>" for h in headers]
    parts += [""] + [_refusal(f) for f in functions]
    return "\n".join(parts) + "\n"


def _refusal(function: CatalogFunction) -> str:
    returns = function.returns
    body = f'aclsim::refuse("{function.name}")'
    if returns == "void":
        result = f"{body};"
    elif returns in ("aclError", "aclnnStatus"):
        result = f"return {body};"
    else:
        result = (
            f"{body}; return {returns}();" if "*" not in returns else f"{body}; return nullptr;"
        )
    return f"ACL_FUNC_VISIBILITY {_unnamed(function)} {{ {result} }}"


def _unnamed(function: CatalogFunction) -> str:
    """The prototype without parameter names, so that none is reported as unused."""
    params = ", ".join(_bare(p.type) for p in function.params) or "void"
    space = "" if function.returns.endswith("*") else " "
    return f"{function.returns}{space}{function.name}({params})"


def _bare(ctype: str) -> str:
    return ctype.replace("[][2]", "(*)[2]") if "[][2]" in ctype else ctype
