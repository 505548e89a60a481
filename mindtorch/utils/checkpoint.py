"""Owns activation checkpointing: run again in backward instead of keeping what forward made."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any
from weakref import ref

import mindtorch

from .._autograd.function import Function
from .._autograd.grad_mode import LOCAL, MODES
from .._autograd.graph import saved_tensors_hooks
from .._autograd.running import current_graph_task_id
from .._autograd.scope import StepScope
from .._random.generator import Generator, default_generator
from .._tensor.tensor import Tensor
from ._pytree import tree_leaves
from ._selective import (
    CheckpointPolicy as CheckpointPolicy,
    SelectiveCheckpointContext as SelectiveCheckpointContext,
    create_selective_checkpoint_contexts as create_selective_checkpoint_contexts,
)

_TIP = """
Tip: To see a more detailed error message, either pass `debug=True` to
`torch.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
enable checkpoint\N{NON-BREAKING HYPHEN}debug mode globally.

If this error occurs under torch.compile with automatic_dynamic_shapes enabled,
it may be because the recomputation selected a different compiled graph than the
forward pass (e.g., a dynamic graph instead of the original static graph).
To fix this, either:
  - Use torch._dynamo.mark_dynamic() to explicitly mark varying dimensions as
    dynamic upfront, avoiding the static-to-dynamic transition.
  - Call torch._C._dynamo.eval_frame._set_lru_cache(False) to disable LRU cache
    reordering, which can change which graph is checked first between forward
    and recompute.
See https://github.com/pytorch/pytorch/issues/166926 for more details and
workaround examples.
"""


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function saved other tensors than the first."""


class _AllSaved(Exception):
    """The second run has saved what the first did: the rest of it is not needed."""


_UNPACKED = (
    "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once."
    " {}If you are calling ctx.saved_tensors in backward, make sure to do so only once. Otherwise"
    " please open an issue with details on your use case."
)
_OVERLAP = (
    "Performing two backward calls that overlap (i.e. require the same saved activation in order to"
    " compute gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup"
    " context. "
)


class _Holder:
    """A tensor that the first run saved: its place, and what the second runs made of it."""

    __slots__ = ("__weakref__", "again", "place")

    def __init__(self, place: int):
        self.place = place
        self.again: dict[object, Tensor | None] = {}  # by the pass; None once it was read


class _Frame:
    """One checkpointed call: what its first run saved, made again once for each backward pass."""

    def __init__(self, run: Callable[[], Any], compares: bool, stops: bool):
        self.run, self.compares, self.stops = run, compares, stops
        self.shapes: list[dict[str, object]] = []
        self.holders: list[ref[_Holder]] = []
        self.passes: set[object] = set()
        self.ended = False  # the first run

    def pack(self, tensor: Tensor) -> _Holder:
        holder = _Holder(len(self.shapes))
        self.shapes.append(_metadata(tensor))
        self.holders.append(ref(holder))
        return holder

    def unpack(self, holder: _Holder) -> Tensor:
        number: object = GraphExecGroup._get_current_group() or current_graph_task_id()
        if number == -1:
            number = object()  # outside of a pass nothing is kept
        if number not in self.passes:
            count = self._recompute(number)
            self.passes.add(number)
            if count < len(self.shapes):
                raise CheckpointError(
                    "torch.utils.checkpoint: A different number of tensors was saved during the"
                    f" original forward and recomputation.\nNumber of tensors saved during"
                    f" forward: {len(self.shapes)}\nNumber of tensors saved during recomputation:"
                    f" {count}.\n{_TIP}"
                )
        tensor = holder.again.get(number)
        if tensor is None:
            raise CheckpointError(_UNPACKED.format("" if isinstance(number, int) else _OVERLAP))
        holder.again[number] = None
        return tensor

    def _recompute(self, number: object) -> int:
        """Fill the holders; how many tensors the second run saved."""
        shapes: list[object] = []

        def keep(tensor: Tensor) -> Tensor:
            tensor = tensor.detach() if tensor.requires_grad else tensor
            place = len(shapes)
            if place >= len(self.holders):
                if self.ended:
                    raise CheckpointError(
                        "torch.utils.checkpoint: trying to save more tensors during recomputation"
                        f" than during the original forward pass.\n{_TIP}"
                    )
                return tensor
            shapes.append(_metadata(tensor))
            holder = self.holders[place]()
            if holder is not None:
                holder.again[number] = tensor
            if self.stops and len(shapes) == len(self.holders):
                raise _AllSaved
            return tensor

        hooks = saved_tensors_hooks(keep, lambda saved: saved)
        with contextlib.suppress(_AllSaved), mindtorch.enable_grad(), hooks:
            self.run()
        mismatches = [
            f"tensor at position {i}:\nsaved metadata: {was}\nrecomputed metadata: {now}\n"
            for i, (was, now) in enumerate(zip(self.shapes, shapes, strict=False))
            if self.compares and was != now
        ]
        if mismatches:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different"
                f" metadata than during the forward pass.\n{''.join(mismatches)}.\n{_TIP}"
            )
        return len(shapes)


class _Inputs:
    """Arguments of a checkpointed call: its tensors are saved by the hooks of outside."""

    def __init__(self, args: Sequence[Any]):
        hooks = LOCAL.pack[-1] if LOCAL.pack else (None, None)
        self.pack: Callable[[Tensor], Any] | None = hooks[0]
        self.unpack: Callable[[Any], Tensor] | None = hooks[1]
        self.values = [self._saved(value) for value in args]

    def _saved(self, value: Any) -> Any:
        if self.pack is None or not isinstance(value, Tensor):
            return None, value
        return value.requires_grad, self.pack(value)

    def restored(self) -> Iterator[Any]:
        """The arguments; a tensor requires grad as it did."""
        for requires_grad, value in self.values:
            if requires_grad is None:
                yield value
                continue
            assert self.unpack is not None
            tensor = self.unpack(value)
            same = tensor.requires_grad == requires_grad
            yield tensor if same else tensor.detach().requires_grad_(requires_grad)


def _metadata(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


def noop_context_fn() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Contexts of the first and the second run that change nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Any = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Tensor:
    """`function(*args)`, its saved tensors dropped and made again in backward.

    Random numbers repeat when `preserve_rng_state`, on cpu and on the devices of the arguments;
    autocast is as it was. `context_fn` gives two contexts, of the first run and of the second.
    CheckpointError when the second run saves other tensors than the first.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly."
            " Starting in PyTorch 2.9, calling checkpoint without use_reentrant will raise an"
            " exception. use_reentrant=False is recommended, but if you need to preserve the"
            " current default behavior, you can pass use_reentrant=True. Refer to docs for more"
            " details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    if use_reentrant and kwargs:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
    if use_reentrant and context_fn is not noop_context_fn:
        raise ValueError(
            "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
        )
    forward, second = context_fn()
    if use_reentrant:
        result: Any = CheckpointFunction.apply(function, preserve_rng_state, *args)
        return result
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"determinism_check should be one of ['default', 'none'], but got {determinism_check}"
        )
    if not LOCAL.grad:
        return function(*args, **kwargs)
    states, casts = _states((args, kwargs)) if preserve_rng_state else [], LOCAL.autocast
    inputs = _Inputs(args)

    def again() -> None:
        with _drawing_from(states), _Autocast(casts), second:
            function(*inputs.restored(), **kwargs)

    early = early_stop if _early_stop is None else _early_stop
    frame = _Frame(again, determinism_check == "default", early)
    with saved_tensors_hooks(frame.pack, frame.unpack), forward:
        result = function(*args, **kwargs)
    frame.ended = True
    return result


class CheckpointFunction(Function):
    """What `checkpoint(use_reentrant=True)` applies: without a graph until the backward."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserves: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run, ctx.casts = function, LOCAL.autocast
        ctx.states = _states(args) if preserves else []
        ctx.others = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with mindtorch.no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        task = LOCAL.task
        if task is not None and task.needed is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or"
                " passing an `inputs` parameter to .backward(). To resolve this error, you can"
                " either set use_reentrant=False, or call .backward() without passing the `inputs`"
                " argument."
            )
        inputs = list(ctx.others)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[place] = tensor
        detached = detach_variable(tuple(inputs))
        with _drawing_from(ctx.states), _Autocast(ctx.casts), mindtorch.enable_grad():
            results = ctx.run(*detached)
        results = (results,) if isinstance(results, Tensor) else results
        pairs = zip(results, grads, strict=True)
        derived: list[Any] = [(r, g) for r, g in pairs if isinstance(r, Tensor) and r.requires_grad]
        if not derived:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        roots, cotangents = map(list, zip(*derived, strict=True))
        mindtorch.autograd.backward(roots, cotangents)
        return None, None, *(x.grad if isinstance(x, Tensor) else None for x in detached)


class _Autocast(StepScope):
    """Autocast as it was at another time."""

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    def steps(self) -> Iterator[None]:
        before = LOCAL.autocast
        try:
            MODES.active += 1
            LOCAL.autocast = self.settings
            yield
        finally:
            LOCAL.autocast = before
            MODES.active -= 1


def _states(arguments: Any) -> list[tuple[Generator, Tensor]]:
    """The default generators of cpu and of the tensors' devices, with their states."""
    leaves = [leaf for leaf in tree_leaves(arguments) if isinstance(leaf, Tensor)]
    devices = dict.fromkeys(["cpu", *(str(leaf.device) for leaf in leaves)])
    generators = [default_generator(device) for device in devices if device != "meta"]
    return [(generator, generator.get_state()) for generator in generators]


@contextlib.contextmanager
def _drawing_from(states: Sequence[tuple[Generator, Tensor]]) -> Iterator[None]:
    before = [(generator, generator.get_state()) for generator, _ in states]
    try:
        for generator, state in states:
            generator.set_state(state)
        yield
    finally:
        for generator, state in before:
            generator.set_state(state)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Indices of the tensors' devices that are not cpu, with the states of their generators."""
    states = [(g, s) for g, s in _states(args) if g.device.type != "cpu"]
    return [g.device.index or 0 for g, _ in states], [state for _, state in states]


def set_device_states(
    devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None
) -> None:
    """Set the generators of devices to what `get_device_states` gave."""
    if device_type == "meta":
        return
    for index, state in zip(devices, states, strict=True):
        default_generator(f"{device_type or 'npu'}:{index}").set_state(state)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """The same tensors without history, and with the same wish for gradients."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs
    )


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn where no input wants a gradient."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


_early_stop: bool | None = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Inside, second runs end with the last tensor that the first one saved, or at their end."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Inside, errors tell more in torch; here they tell all that they know."""
    yield


class DefaultDeviceType:
    """The kind of device that arguments without a device's tensor are taken to be on."""

    _default_device_type = "npu"

    @staticmethod
    def set_device_type(device: str = "npu") -> None:
        """Set it."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """Get it."""
        return DefaultDeviceType._default_device_type


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run a sequence in checkpointed segments; the last one is run plainly."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be"
            " passed explicitly. In version 2.9 we will raise an exception if use_reentrant is not"
            " passed. use_reentrant=False is recommended, but if you need to preserve the current"
            " default behavior, you can pass use_reentrant=True. Refer to docs for more details on"
            " the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    if kwargs.keys() - {"preserve_rng_state"}:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
    steps = list(functions.children()) if hasattr(functions, "children") else functions
    size = len(steps) // segments
    range(0, len(steps), size)  # ValueError for more segments than steps
    start = 0
    for _ in range(segments - 1):
        part = _chain(steps[start : start + size])
        input = checkpoint(part, input, use_reentrant=use_reentrant, **kwargs)
        start += size
    return _chain(steps[start:])(input)


def _chain(steps: Sequence[Any]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return run


class GraphExecGroup:
    """Inside, passes share what they compute again, and none needs what another has read.

    RuntimeError for one inside of another.
    """

    _current: GraphExecGroup | None = None

    def __enter__(self) -> GraphExecGroup:
        current = GraphExecGroup._current
        if current is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested. Already inside group {current}"
            )
        GraphExecGroup._current = self
        return self

    def __exit__(self, *args: object) -> None:
        GraphExecGroup._current = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return GraphExecGroup._current
