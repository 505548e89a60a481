"""Owns `torch.autograd.graph`: hooks on what is saved, and looking at nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .._tensor.device import device as Device
from .._tensor.tensor import Tensor
from ..ops.spec import aten
from .grad_mode import LOCAL, MODES
from .node import Node
from .scope import Scope
from .written import edge

__all__ = ["Node", "get_gradient_edge", "increment_version", "save_on_cpu", "saved_tensors_hooks"]


class saved_tensors_hooks(Scope):  # noqa: N801 - torch's name
    """Pass every tensor saved for backward through `pack`, and through `unpack` when it is read."""

    def __init__(self, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]):
        self.hooks = (pack, unpack)

    def steps(self) -> Iterator[None]:
        before = LOCAL.pack
        try:
            MODES.active += 1
            LOCAL.pack = (*before, self.hooks)
            yield
        finally:
            LOCAL.pack = before
            MODES.active -= 1


class save_on_cpu(saved_tensors_hooks):  # noqa: N801 - torch's name
    """Keep saved tensors in host memory."""

    def __init__(self, pin_memory: bool = False, device_type: str = "npu"):
        def pack(tensor: Tensor) -> tuple[Device, Tensor]:
            return tensor.device, aten.to(tensor.detach(), "cpu")

        super().__init__(pack, lambda packed: aten.to(packed[1], packed[0]))


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a write that autograd did not see."""
    tensors = [tensor] if isinstance(tensor, Tensor) else list(tensor)
    for t in tensors:
        t._storage.value += 1


def get_gradient_edge(tensor: Tensor) -> Any:
    """The node and output number that this tensor's gradient goes to."""
    input_edge = edge(tensor)
    if input_edge is None:
        raise RuntimeError("It is not possible to get the gradient edge of this Tensor")
    return input_edge
