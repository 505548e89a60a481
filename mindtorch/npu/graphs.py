"""Owns torch.npu's NPUGraph and `make_graphed_callables`: work that one call replays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .._autograd.function import Function
from .._autograd.grad_mode import no_grad
from .._autograd.surface import grad
from .._backends.npu import runtime
from .._backends.npu.graphs import CapturedGraph, graph
from .._backends.npu.streams import Stream, StreamContext, index_of
from .._random import generator as _random
from .._tensor.tensor import Tensor
from ..utils import _pytree

Tensors: TypeAlias = tuple[Tensor, ...]


class NPUGraph(CapturedGraph):
    """Work captured from a stream (`with torch.npu.graph(g):`), run by one call of `replay`.

    Random numbers are refused in a capture: every replay would repeat them.
    """

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        self._random = _random_state()
        super().capture_begin(pool, capture_error_mode)

    def capture_end(self) -> None:
        super().capture_end()
        if _random_state() != self._random:
            self.reset()
            raise NotImplementedError(
                "NPUGraph.capture_end: random operators were captured, whose numbers every replay "
                "would repeat; take them out of the graph"
            )


def _random_state() -> list[int]:
    state: list[int] = _random.default_generator(f"npu:{index_of(None)}").get_state().tolist()
    return state


class _Halves:
    """A callable's forward and backward, each captured once, on tensors that stay."""

    def __init__(
        self, call: Callable[..., Any], sample: Tensors, parameters: Tensors, allow_unused: bool
    ) -> None:
        self._call, self.sample, self._allow_unused = call, sample, allow_unused
        self.parameters = parameters
        self._leaves = tuple(t for t in (*sample, *parameters) if t.requires_grad)
        self._stream = Stream()
        self._forward, self._backward = NPUGraph(), NPUGraph()

    def warm_up(self, times: int) -> None:
        """Run whole steps on the stream of the capture: plans and memory are there before it."""
        runtime.device(None).synchronize()
        with StreamContext(self._stream):
            for _ in range(times):
                outputs, _ = _pytree.tree_flatten(self._call(*self.sample))
                self._gradients(outputs, _incoming(outputs))
        runtime.device(None).synchronize()

    def capture(self, pool: Any) -> None:
        with graph(self._forward, pool, self._stream):
            result = self._call(*self.sample)
        self.outputs, self.structure = _pytree.tree_flatten(result)
        if not all(isinstance(output, Tensor) for output in self.outputs):
            raise TypeError("make_graphed_callables: a callable must return tensors only")
        self._incoming = _incoming(self.outputs)
        with graph(self._backward, pool, self._stream):
            gradients = iter(self._gradients(self.outputs, self._incoming))
        surface = (*self.sample, *self.parameters)
        self._outgoing = [next(gradients, None) if t.requires_grad else None for t in surface]
        self.outputs = [output.detach() for output in self.outputs]

    def _gradients(self, outputs: Sequence[Tensor], incoming: Sequence[Tensor | None]) -> Any:
        differentiable = [(o, g) for o, g in zip(outputs, incoming, strict=True) if g is not None]
        if not differentiable or not self._leaves:
            return ()
        return grad(
            [o for o, _ in differentiable], self._leaves, tuple(g for _, g in differentiable),
            allow_unused=self._allow_unused,
        )  # fmt: skip

    def forward(self, inputs: Sequence[Tensor]) -> Tensors:
        """The outputs for `inputs`, of the sample's shapes; copies: the next call writes there."""
        with no_grad():
            for static, value in zip(self.sample, inputs, strict=True):
                if static is not value:
                    static.detach().copy_(value)
            self._forward.replay()
            return tuple(output.clone() for output in self.outputs)

    def constant(self, outputs: Tensors) -> list[Tensor]:
        """Those that no gradient leads to."""
        return [o for o, g in zip(outputs, self._incoming, strict=True) if g is None]

    def backward(self, incoming: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Gradients of the inputs and parameters; copies, as they may be summed up over calls."""
        with no_grad():
            for static, value in zip(self._incoming, incoming, strict=True):
                if static is not None:
                    static.zero_() if value is None else static.copy_(value)
            self._backward.replay()
            return [None if g is None else g.clone() for g in self._outgoing]


def _incoming(outputs: Sequence[Tensor]) -> list[Tensor | None]:
    with no_grad():
        return [o.detach().clone() if o.requires_grad else None for o in outputs]


class _Replayed(Function):
    """Both halves as one node."""

    @staticmethod
    def forward(ctx: Any, halves: _Halves, *surface: Tensor) -> Tensors:
        ctx.halves = halves
        outputs = halves.forward(surface[: len(halves.sample)])
        ctx.mark_non_differentiable(*halves.constant(outputs))
        return outputs

    @staticmethod
    def backward(ctx: Any, *incoming: Tensor | None) -> tuple[Tensor | None, ...]:
        return (None, *ctx.halves.backward(incoming))


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Any = None,
) -> Any:
    """Callables whose forward and backward are one replay each; a module's forward is replaced.

    `sample_args` is a tuple of tensors, or, for a tuple of callables, a tuple of such tuples. Later
    calls take tensors of the same shapes, and each is followed by its backward before the next.
    What a module does in its other mode (`train`, `eval`) is not captured and runs as before. A
    random operator is refused (NotImplementedError). `pool` is as NPUGraph.capture_begin has it.

    Source: the torch.cuda.make_graphed_callables document.
    """
    several = isinstance(callables, tuple)
    calls, samples = (callables, sample_args) if several else ((callables,), (sample_args,))
    if not several and isinstance(sample_args, Tensor):
        samples = ((sample_args,),)
    if len(calls) != len(samples):
        raise ValueError(
            f"make_graphed_callables: {len(calls)} callables, {len(samples)} tuples of sample_args"
        )
    graphed = []
    for call, sample in zip(calls, samples, strict=True):
        halves = _Halves(call, _checked(sample), _parameters(call), allow_unused_input)
        halves.warm_up(num_warmup_iters)
        halves.capture(pool)
        graphed.append(_dressed(call, halves))
    return tuple(graphed) if several else graphed[0]


def _checked(sample: Any) -> Tensors:
    leaves = tuple(sample)
    wrong = next((leaf for leaf in leaves if not isinstance(leaf, Tensor)), None)
    if wrong is not None:
        raise TypeError(
            f"make_graphed_callables: sample_args must be tensors, given {type(wrong).__name__}"
        )
    return leaves


def _parameters(call: Any) -> Tensors:
    from ..nn import Module

    if not isinstance(call, Module):
        return ()
    if any(buffer.requires_grad for buffer in call.buffers()):
        raise RuntimeError("make_graphed_callables: buffers of a module must not require gradients")
    return tuple(call.parameters())


def _dressed(call: Any, halves: _Halves) -> Any:
    """A function, or the module itself with a forward that replays in the mode of the capture."""

    def replayed(*inputs: Tensor) -> Any:
        if len(inputs) != len(halves.sample):
            raise TypeError(
                f"a graphed callable takes {len(halves.sample)} tensors, given {len(inputs)}"
            )
        outputs = _Replayed.apply(halves, *inputs, *halves.parameters)
        return _pytree.tree_unflatten(outputs, halves.structure)

    if not hasattr(call, "training"):
        return replayed
    training, usual = call.training, call.forward
    call.forward = lambda *inputs: (replayed if call.training == training else usual)(*inputs)
    return call
