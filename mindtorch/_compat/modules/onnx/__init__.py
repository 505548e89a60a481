"""Owns torch.onnx's names for code that registers symbols: exporting is refused."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from . import symbolic_helper, symbolic_opset9, symbolic_opset11

__all__ = ["OperatorExportTypes", "TrainingMode", "export", "is_in_onnx_export",
           "register_custom_op_symbolic", "symbolic_helper", "symbolic_opset9",
           "symbolic_opset11"]  # fmt: skip


class TrainingMode(IntEnum):
    """In which mode a model would be exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(IntEnum):
    """How operators would be exported."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class ONNXProgram:
    """Stands for an exported model: none is ever made."""


def is_in_onnx_export() -> bool:
    """False."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Nothing to register: there is no exporter."""


unregister_custom_op_symbolic = register_custom_op_symbolic


def export(model: Any, *_: object, **__: object) -> Any:
    """Refused: nothing is traced."""
    raise NotImplementedError(
        f"torch.onnx.export: mindtorch runs eagerly and exports no graphs ({type(model).__name__})"
    )
