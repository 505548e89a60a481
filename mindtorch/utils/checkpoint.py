"""Owns activation checkpointing: run again in backward instead of keeping what forward made."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import mindtorch

from .._autograd.grad_mode import LOCAL
from .._autograd.graph import saved_tensors_hooks
from .._tensor.tensor import Tensor


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function saved other tensors than the first."""


class _Frame:
    """One checkpointed call: what its first run saved, and what running it again gave."""

    def __init__(self, run: Callable[[], Any]):
        self.run = run
        self.shapes: list[Any] = []
        self.again: list[Any] | None = None

    def pack(self, tensor: Tensor) -> int:
        self.shapes.append((tuple(tensor.shape), tensor.dtype))
        return len(self.shapes) - 1

    def unpack(self, number: int) -> Tensor:
        if self.again is None:
            self.again = self._recompute()
        if number >= len(self.again):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the"
                f" original forward and recomputation.\nNumber of tensors saved during forward:"
                f" {len(self.shapes)}\nNumber of tensors saved during recomputation:"
                f" {len(self.again)}"
            )
        return self.again[number]

    def _recompute(self) -> list[Any]:
        recomputed: list[Any] = []

        def keep(tensor: Tensor) -> Tensor:
            recomputed.append(tensor.detach())
            return tensor

        with mindtorch.enable_grad(), saved_tensors_hooks(keep, lambda saved: saved):
            self.run()
        return recomputed


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Any = None,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Tensor:
    """`function(*args)`, its saved tensors dropped and made again in backward.

    Random numbers repeat when `preserve_rng_state`. `context_fn` gives two contexts, of the first
    run and of the second. CheckpointError when the second run differs.
    """
    state = _rng_state() if preserve_rng_state else None

    if use_reentrant and context_fn is not None:
        raise ValueError(
            "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
        )
    forward, second = (context_fn or noop_context_fn)()

    def again() -> None:
        with _rng(state), second:
            function(*args, **kwargs)

    if not LOCAL.grad:
        return function(*args, **kwargs)
    frame = _Frame(again)
    with saved_tensors_hooks(frame.pack, frame.unpack), forward:
        return function(*args, **kwargs)


def noop_context_fn() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Contexts of the first and the second run that change nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def _rng_state() -> Any:
    try:
        return mindtorch.get_rng_state()
    except AttributeError:
        return None


@contextlib.contextmanager
def _rng(state: Any) -> Any:
    if state is None:
        yield
        return
    now = mindtorch.get_rng_state()
    mindtorch.set_rng_state(state)
    try:
        yield
    finally:
        mindtorch.set_rng_state(now)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run a sequence in checkpointed segments; the last one is run plainly."""
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = max(1, len(steps) // segments)
    start = 0
    for _ in range(segments - 1):
        input = checkpoint(_chain(steps[start : start + size]), input, **kwargs)
        start += size
    return _chain(steps[start:])(input)


def _chain(steps: Sequence[Any]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return run
