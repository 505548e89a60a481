"""Owns `torch.autograd.graph`: hooks on what is saved, and looking at nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from .._tensor.device import device as Device
from .._tensor.tensor import Tensor
from ..ops.spec import aten
from .codegen import edge
from .grad_mode import LOCAL, MODES
from .handles import RemovableHandle
from .node import GradientEdge, Node, public_node, refuse_uncallable
from .scope import StepScope

__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors",
           "disable_saved_tensors_hooks", "get_gradient_edge", "increment_version",
           "region_activation_memory_budget", "register_multi_grad_hook", "save_on_cpu",
           "saved_tensors_hooks", "set_override_stale_capture_stream",
           "set_warn_on_accumulate_grad_stream_mismatch"]  # fmt: skip


class saved_tensors_hooks(StepScope):  # noqa: N801 - torch's name
    """Pass every tensor saved for backward through `pack`, and through `unpack` when it is read."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        self.hooks = (pack_hook, unpack_hook)

    def steps(self) -> Iterator[Any]:
        return _hooking(self.hooks)


def _hooking(hooks: tuple[Any, ...]) -> Iterator[None]:
    """Holds no context, so that one that is entered and never left can go."""
    before = LOCAL.pack
    refuse_uncallable("_push_saved_tensors_default_hooks", hooks)
    mine = (*before, hooks)
    try:
        MODES.active += 1
        LOCAL.pack = mine
        yield
    finally:
        if LOCAL.pack is mine:
            LOCAL.pack = before
        MODES.active -= 1


class _OpenHooks(tuple[Any, Any]):
    """Hooks that no `with` leaves."""


def push_hooks(pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
    """Enter `saved_tensors_hooks` until `pop_hooks`."""
    MODES.active += 1
    LOCAL.pack = (*LOCAL.pack, _OpenHooks((pack_hook, unpack_hook)))


def pop_hooks() -> None:
    """Leave the hooks of saved tensors that were entered last, if any."""
    MODES.active -= bool(LOCAL.pack) and isinstance(LOCAL.pack[-1], _OpenHooks)
    LOCAL.pack = LOCAL.pack[:-1]


class save_on_cpu(saved_tensors_hooks):  # noqa: N801 - torch's name
    """Keep saved tensors in host memory."""

    def __init__(self, pin_memory: bool = False, device_type: str = "npu"):
        def pack(tensor: Tensor) -> tuple[Device, Tensor]:
            return tensor.device, aten.to(tensor.detach(), "cpu")

        super().__init__(pack, lambda packed: aten.to(packed[1], packed[0]))


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a write that autograd did not see."""
    if not isinstance(tensor, Iterable):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    tensors = [tensor] if isinstance(tensor, Tensor) else list(tensor)
    for t in tensors:
        t._storage.value += 1


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The node and output number that this tensor's gradient goes to."""
    input_edge = edge(tensor) if tensor.requires_grad else None
    if input_edge is None:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require"
            " gradients"
        )
    return GradientEdge(public_node(input_edge[0]), input_edge[1])


class _MultiHandle(RemovableHandle):
    """Removes the hooks of several tensors (torch's handle of a hook on many)."""

    __module__ = "torch.autograd.graph"

    def __init__(self, handles: Sequence[RemovableHandle]):
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Take all of them away."""
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> tuple[RemovableHandle, ...]:
        return self.handles

    def __setstate__(self, state: tuple[RemovableHandle, ...]) -> None:
        self.handles = state


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> _MultiHandle:
    """Call `fn` once a backward pass: with all gradients (`all`), or with the first (`any`).

    Gradients that the pass does not compute are None and are not waited for. ValueError for
    another mode.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        return _MultiHandle(_first_hooks(tensors, fn))
    nodes = []
    for tensor in tensors:
        to = tensor if isinstance(tensor, GradientEdge) else edge(tensor)
        if to is None:
            raise AssertionError("Expected gradient function to be set")
        nodes.append(to[0])
    key = object()  # of what a pass knows of this hook

    def hook_of(at: int) -> Callable[[Tensor], None]:
        def hook(gradient: Tensor) -> None:
            waiting = LOCAL.task.more.get(key)
            if waiting is None:
                reached = LOCAL.task.reached()
                left = {i for i, node in enumerate(nodes) if node in reached}
                waiting = LOCAL.task.more[key] = left, [None] * len(nodes)
            waiting[0].discard(at)
            waiting[1][at] = gradient
            if not waiting[0]:
                del LOCAL.task.more[key]
                fn(waiting[1])

        return hook

    return _MultiHandle([t.register_hook(hook_of(i)) for i, t in enumerate(tensors)])


def _first_hooks(tensors: Sequence[Tensor], fn: Callable[[Tensor], Any]) -> list[RemovableHandle]:
    def hook(gradient: Tensor) -> None:
        if hook not in LOCAL.task.more:
            LOCAL.task.more[hook] = True
            fn(gradient)

    return [t.register_hook(hook) for t in tensors if t.requires_grad]


class disable_saved_tensors_hooks(StepScope):  # noqa: N801 - torch's name
    """Inside, tensors are saved without hooks; entering a hook raises `error_message`."""

    def __init__(self, error_message: str):
        self.message = error_message

    def steps(self) -> Iterator[None]:
        before = LOCAL.pack
        frozen = FrozenHooks(self.message, before)
        try:
            MODES.active += 1
            LOCAL.pack = frozen
            yield
        finally:
            LOCAL.pack = before
            MODES.active -= 1


class FrozenHooks(tuple[Any, ...]):
    """No hooks, and none to be added; RuntimeError where there are some."""

    def __new__(cls, message: str, before: tuple[Any, ...]) -> FrozenHooks:
        if before:
            raise RuntimeError(message)
        return super().__new__(cls)

    def __init__(self, message: str, before: tuple[Any, ...]):
        self.message = message

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError(self.message)


class _AllowMutationOnSavedContext:
    """What `with allow_mutation_on_saved_tensors() as` names: the copies are its own to drop."""

    def __init__(self, scope: allow_mutation_on_saved_tensors):
        self._scope = scope

    def clear(self) -> None:
        """Forget what was saved: backward is refused from here on."""
        self._scope.active = False


class allow_mutation_on_saved_tensors(saved_tensors_hooks):  # noqa: N801 - torch's name
    """Inside, tensors saved for backward may be written to: what was saved is copied first.

    RuntimeError inside of another; AssertionError where backward runs outside.
    """

    def __init__(self) -> None:
        self.active = False
        super().__init__(lambda tensor: tensor.detach().clone(), self._unpack)

    def _unpack(self, saved: Tensor) -> Tensor:
        if not self.active:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin"
                " which the graph was originally recorded."
            )
        return saved

    def steps(self) -> Iterator[Any]:
        if any(getattr(h[1], "__func__", None) is type(self)._unpack for h in LOCAL.pack):
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        try:
            self.active = True
            for _ in super().steps():
                yield _AllowMutationOnSavedContext(self)
        finally:
            self.active = False


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Accepted: gradients are added up on the stream of their backward, so that none differ."""


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Accepted: no node keeps a stream of an earlier capture."""


def region_activation_memory_budget(budget: float) -> NoReturn:
    """RuntimeError, as in torch outside of compiled code; TypeError and ValueError for no share."""
    what = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, int | float):
        raise TypeError(f"{what}: expects a float, got {type(budget).__name__}")
    if not 0.0 <= budget <= 1.0:
        raise ValueError(f"{what}: must be in [0, 1], got {budget}")
    raise RuntimeError(
        f"{what} can only be used inside a torch.compile region; it has no effect in eager mode."
    )
