"""Owns running a graph once on fake tensors, to note each node's result."""

from __future__ import annotations

from typing import Any

from ..._tensor.tensor import Tensor
from ...utils._pytree import tree_flatten
from ..fake import FakeTensor, FakeTensorMode, detect_fake_mode
from ..interpreter import Interpreter
from ..node import Node

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Writes each node's fake result into its meta as `val`."""

    def __init__(self, module: Any, mode: FakeTensorMode | None = None):
        super().__init__(module)
        self._mode = mode or FakeTensorMode()

    def run_node(self, n: Node) -> Any:
        """The node's result, noted in its meta."""
        result = super().run_node(n)
        leaves, _ = tree_flatten(result)
        if any(isinstance(leaf, FakeTensor) for leaf in leaves):
            n.meta["val"] = result
        return result

    def propagate(self, *args: Any) -> Any:
        """Run with fake tensors of these arguments."""
        fakes = [self._mode.from_tensor(a) if isinstance(a, Tensor) else a for a in args]
        return self.propagate_dont_convert_inputs(*fakes)

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run with these arguments, which are fake."""
        with detect_fake_mode(args) or self._mode:
            return super().run(*args)
