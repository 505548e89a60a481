"""Owns running a graph once to note each node's shape and dtype."""

from __future__ import annotations

import traceback
from contextlib import nullcontext
from copy import deepcopy
from typing import Any, NamedTuple

from ..._tensor.geometry import Size
from ..._tensor.tensor import Tensor
from ..fake import FakeTensorMode
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its numbers."""

    shape: Size
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """A tensor's shape, dtype, strides and the format in which it lies."""
    import mindtorch as torch

    lying = None
    for one in (torch.contiguous_format, torch.channels_last, torch.channels_last_3d):
        dims = {torch.channels_last: 4, torch.channels_last_3d: 5}.get(one, result.dim())
        if include_contiguity and result.dim() == dims and result.is_contiguous(memory_format=one):
            lying = one
            break
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), lying, False, {}
    )


def fake_module(gm: Any, mode: FakeTensorMode) -> Any:
    """A copy of a graph module whose parameters and buffers are fake."""
    memo: dict[int, object] = {
        id(t): mode.from_tensor(t) for t in (*gm.parameters(), *gm.buffers())
    }
    return deepcopy(gm, memo)


class ShapeProp(Interpreter):
    """Writes `tensor_meta` and `type` into each node's meta."""

    def __init__(self, gm: Any, fake_mode: FakeTensorMode | None = None):
        super().__init__(gm if fake_mode is None else fake_module(gm, fake_mode))
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        """The node's result, noted in its meta."""
        try:
            with self.fake_mode or nullcontext():
                result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(
                f"ShapeProp error for: node={n.format_node()} with meta={n.meta}"
            ) from error
        seen = []

        def note(value: object) -> Any:
            if not isinstance(value, Tensor):
                return value
            seen.append(value)
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, note)
        if seen:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: object) -> Any:
        """Run with these arguments, whose fake tensors are used with a `fake_mode`."""
        mode = self.fake_mode
        if mode is not None:
            args = tuple(mode.from_tensor(a) if isinstance(a, Tensor) else a for a in args)
        return super().run(*args)
