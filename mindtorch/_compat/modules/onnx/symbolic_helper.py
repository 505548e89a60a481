"""torch.onnx.symbolic_helper: what decorates symbols of an exporter that is not here."""

from __future__ import annotations

from typing import Any


def parse_args(*descriptors: str) -> Any:
    """A decorator that leaves symbols as they are."""
    return lambda fn: fn


quantized_args = parse_args
