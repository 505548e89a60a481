"""torch._dynamo.testing: backends that count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindtorch.fx import GraphModule


class CompileCounter:
    """A backend that counts graphs and the calls in them, and runs them as they are."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin at nothing."""
        self.frame_count: int = 0
        self.op_count: int = 0
        self.graphs: list[GraphModule] = []

    def __call__(self, gm: GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)
        return gm.forward


class CompileCounterWithBackend(CompileCounter):
    """The same that keeps the graphs; any backend runs them eagerly."""

    def __init__(self, backend: object) -> None:
        self.backend = backend
        super().__init__()

    def __call__(self, gm: GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self.graphs.append(gm)
        return super().__call__(gm, example_inputs)


class EagerAndRecordGraphs(CompileCounterWithBackend):
    """A backend that keeps the graphs."""

    def __init__(self) -> None:
        super().__init__("eager")
