"""Fields that rows of several families share: sources, classes, dtypes."""

from __future__ import annotations

from typing import Any, Final

TORCH: Final = "torch 2.13, document of the function of this name"
TORCH_NN: Final = "torch 2.13, documents of torch.nn.functional"
HEADER_ONLY: Final = "the header of CANN 8.1.RC1 or of August 2026: names and types alone"
GATED_SOURCE: Final = (
    "Shazeer: GLU Variants Improve Transformer, 2020; op-plugin documents "
    "npu_dequant_swiglu_quant, npu_swiglu_quant"
)

FLOATS: Final = ("float16", "bfloat16", "float32")

TORCH_ROW: Final[dict[str, Any]] = {"source": TORCH}
EXACT: Final[dict[str, Any]] = {**TORCH_ROW, "tolerance": "exact"}
COMPOSITE: Final[dict[str, Any]] = {**TORCH_ROW, "tolerance": "composite", "dtypes": FLOATS}

GRADIENT: Final[dict[str, Any]] = {"tolerance": "gradient"}
FINITE_GRADIENT: Final[dict[str, Any]] = {**GRADIENT, "specials": False}
SPARSE_GRADIENT: Final[dict[str, Any]] = {**COMPOSITE, **GRADIENT, "sparse": True}

STEPS: Final[dict[str, Any]] = {**FINITE_GRADIENT, "steps": True}
