"""Renders the table of operators that the simulator has, from its rows and documented facts."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SIMULATOR = ROOT / "aclnn_bindings" / "simulator"
DEFAULT = "910b"
SHORT = {"FLOAT": "f32", "FLOAT16": "f16", "BFLOAT16": "bf16", "DOUBLE": "f64", "BOOL": "bool",
         "INT8": "i8", "INT16": "i16", "INT32": "i32", "INT64": "i64", "UINT8": "u8",
         "UINT16": "u16", "UINT32": "u32", "UINT64": "u64", "COMPLEX64": "c64",
         "COMPLEX128": "c128"}  # fmt: skip


def _modules() -> tuple[Any, Any]:
    sys.path.insert(0, str(SIMULATOR))
    from generation import catalog, rows  # type: ignore[import-not-found]

    return catalog, rows


def _dtypes(loaded: Any, op: str, parameters: list[Any]) -> Iterator[str]:
    """`name: dtypes` for each group of tensor parameters that share a list."""
    spec = loaded.specs.get(op, {})
    groups: dict[tuple[str, ...], list[str]] = {}
    for parameter in parameters:
        if "aclTensor" not in parameter.type:
            continue
        facts = spec.get("params", {}).get(parameter.name, {})
        for _ in range(4):
            if "dtypes" in facts or "dtype_as" not in facts:
                break
            facts = spec["params"].get(facts["dtype_as"], {})
        names = loaded.spec_dtypes[facts["dtypes"]] if "dtypes" in facts else parameter.dtypes
        groups.setdefault(tuple(SHORT.get(n, n.lower()) for n in names), []).append(parameter.name)
    for dtypes, names in groups.items():
        yield f"{', '.join(names)}: {' '.join(dtypes) or 'not documented'}"


def _row(loaded: Any, op: str, file: str) -> str:
    parameters = list(loaded.functions[op + "GetWorkspaceSize"].params[:-2])
    products = loaded.specs.get(op, {}).get("products", "")
    note = "" if not products or DEFAULT in products.split() else f"only on {products}"
    return f"| `{op}` | {file} | {'; '.join(_dtypes(loaded, op, parameters))} | {note} |"


def simulator_ops_page() -> str:
    """Every operator the simulator exports: file, documented dtypes, products."""
    catalog, rows = _modules()
    loaded = catalog.load(ROOT / "aclnn_bindings" / "catalogs")
    sources = sorted((SIMULATOR / "src" / "ops").rglob("*.cpp"))
    found = [
        (op, f"{s.parent.name}/{s.stem}") for s in sources for op in rows.find_ops([s], loaded)
    ]
    lines = [_row(loaded, op, file) for op, file in sorted(found)]
    head = [
        "# Operators of the simulator\n",
        "Generated from the rows in `aclnn_bindings/simulator/src/ops` and the operator facts by",
        "`docs/check.py --write`; do not edit.\n",
        f"{len(found)} operators. The dtypes are those that the operator documents list; each SoC",
        "profile takes away what its product lacks, and an operator that a product lacks answers",
        "361001. float16 and bfloat16 are computed in float32, integers in 64 bits.\n",
        "| operator | file | tensor dtypes | products |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *lines, ""])
