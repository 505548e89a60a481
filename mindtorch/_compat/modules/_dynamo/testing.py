"""torch._dynamo.testing: backends that count."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import mindtorch
from mindtorch.fx import GraphModule

from .._functorch.aot_autograd import make_boxed_func
from .backends.common import aot_autograd
from .utils import same as same


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


class AotEagerAndRecordGraphs:
    """A backend that keeps graphs, and those of forward and backward that they become."""

    def __init__(self) -> None:
        self.graphs: list[GraphModule] = []
        self.fw_graphs: list[GraphModule] = []
        self.bw_graphs: list[GraphModule] = []

    def __call__(self, gm: GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self.graphs.append(gm)

        def compiler_of(graphs: list[GraphModule]) -> Callable[..., Any]:
            def compiler(module: GraphModule, inputs: list[Any]) -> Callable[..., Any]:
                graphs.append(module)
                return make_boxed_func(module.forward)

            return compiler

        return aot_autograd(
            fw_compiler=compiler_of(self.fw_graphs), bw_compiler=compiler_of(self.bw_graphs)
        )(gm, example_inputs)


class EagerAndRecordGraphs(CompileCounterWithBackend):
    """A backend that keeps the graphs."""

    def __init__(self) -> None:
        super().__init__("eager")


def rand_strided(
    size: Sequence[int], stride: Sequence[int], dtype: Any = None, device: Any = "cpu",
    extra_size: int = 0,
) -> Any:  # fmt: skip
    """Random numbers in a tensor of these sizes and strides."""
    dtype = dtype or mindtorch.float32
    pairs = zip(size, stride, strict=True)
    needed = sum((n - 1) * step for n, step in pairs) + 1 + extra_size
    plain = dtype.is_floating_point or dtype.is_complex
    buffer = (
        mindtorch.randn(needed, dtype=dtype, device=device)
        if plain
        else mindtorch.randint(0, 3, (needed,), device=device).to(dtype)
    )
    return mindtorch.as_strided(buffer, size, stride)


def remove_trailing_space(code: str) -> str:
    """Lines without blanks at their ends."""
    return "\n".join(line.rstrip() for line in code.split("\n"))


def normalize_gm(gm_str: str) -> str:
    """A printed graph without lines of comments and blanks at ends."""
    return remove_trailing_space(re.sub(r"(?m)^ *#.*\n?", "", gm_str))


def reset_rng_state(use_xla: bool = False) -> None:
    """Seeds that tests of torch begin with."""
    mindtorch.manual_seed(1337)
    random.seed(1337)


def collect_results(
    model: Any, prediction: Any, loss: Any, example_inputs: Sequence[Any]
) -> list[Any]:
    """A model's result, its loss, gradients and state, and gradients of its inputs."""
    results = [prediction, loss]
    grads = {f"{n}.grad": clone_me(p.grad) for n, p in model.named_parameters()}
    results += [grads, collect_state(model)]
    for example in example_inputs:
        for part in example if isinstance(example, tuple | list) else [example]:
            if isinstance(part, mindtorch.Tensor):
                results.append(part.grad)
    return results


def collect_state(model: Any) -> dict[str, Any]:
    """Copies of parameters and buffers."""
    return {n: clone_me(t) for n, t in (*model.named_parameters(), *model.named_buffers())}


def clone_me(x: Any) -> Any:
    """A copy of a tensor apart from what it was computed by; None for None."""
    return None if x is None else x.detach().clone().requires_grad_(x.requires_grad)


def reduce_to_scalar_loss(out: Any) -> Any:
    """One number of what a model gives; NotImplementedError for other than containers."""
    if isinstance(out, mindtorch.Tensor):
        return out.sum() / out.numel()
    if isinstance(out, list | tuple):
        return sum(reduce_to_scalar_loss(x) for x in out) / len(out)
    if isinstance(out, dict):
        return sum(reduce_to_scalar_loss(x) for x in out.values()) / len(out)
    raise NotImplementedError("Don't know how to reduce", type(out))
