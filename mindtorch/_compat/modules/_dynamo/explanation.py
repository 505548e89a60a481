"""Owns torch._dynamo.explain: which graphs a call becomes, and what ends them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mindtorch.fx import GraphModule


@dataclass
class GraphCompileReason:
    """What ended a graph."""

    reason: str
    user_stack: list[Any] = field(default_factory=list)
    graph_break: bool = True


@dataclass
class ExplainOutput:
    """The graphs of a call."""

    graphs: list[GraphModule]
    graph_count: int
    graph_break_count: int
    break_reasons: list[GraphCompileReason]
    op_count: int
    ops_per_graph: list[list[Any]] | None = None
    out_guards: list[Any] | None = None
    compile_times: str | None = None

    def __str__(self) -> str:
        lines = [
            f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}", "Break Reasons:",
        ]  # fmt: skip
        for at, reason in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {at}:", f"    Reason: {reason.reason}", "    User Stack:"]
            lines += [f"      {frame}" for frame in reason.user_stack]
        lines.append("Ops per Graph:")
        for at, ops in enumerate(self.ops_per_graph or (), 1):
            lines += [f"  Ops {at}:", *(f"    {op}" for op in ops)]
        return "\n".join(lines) + "\n"


def explain(f: Callable[..., Any], *extra_args: object, **extra_kwargs: object) -> Any:
    """What explains a call of `f`, which it makes once (torch._dynamo.explain)."""

    def inner(*args: object, **kwargs: object) -> ExplainOutput:
        graphs: list[GraphModule] = []

        def backend(module: GraphModule, inputs: Any) -> Callable[..., Any]:
            graphs.append(module)
            return module.forward

        from ..compiler.capture import CapturedCall

        call = CapturedCall(f, backend)
        call(*args, **kwargs)
        ops = [[n.target for n in g.graph.nodes if n.op == "call_function"] for g in graphs]
        breaks = [GraphCompileReason(reason) for reason in call.breaks]
        count = sum(map(len, ops))
        return ExplainOutput(graphs, len(graphs), max(len(graphs) - 1, 0), breaks, count, ops, [])

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner
