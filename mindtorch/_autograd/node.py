"""Owns graph nodes: what they keep, how they check it, and how one is applied."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from sys import getrefcount
from typing import Any, NamedTuple
from weakref import ref

from .._tensor.device import device as Device
from .._tensor.dtype import FLOAT, dtype as Dtype
from .._tensor.no_memory import NoMemory
from .._tensor.slots import NodeSlots, inherit
from .._tensor.subclass import DOOR
from .._tensor.tensor import Tensor, wrap
from ..ops.spec import aten
from .grad_mode import LOCAL, MODES, no_grad
from .handles import RemovableHandle, add_hook

counter = itertools.count(1)
LEAF = -(1 << 62)


class Hooked:
    """Whether any leaf has ever had a hook, for which the order of leaves matters."""

    __slots__ = ("leaves",)

    def __init__(self) -> None:
        self.leaves = False


hooked = Hooked()

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after"
    " they have already been freed). Saved intermediate values of the graph are freed when you"
    " call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward"
    " through the graph a second time or if you need to access saved tensors after calling"
    " backward."
)


class _InputMetadata:
    """What a node knows of one of the gradients that it takes."""

    __module__ = "torch._C._autograd"
    is_nested_tensor = is_cpp_nested_tensor = False

    def __init__(self, shape: list[int], dtype: Dtype, device: Device):
        self.shape, self.dtype, self.device = shape, dtype, device


class Node(NodeSlots):
    """A step of the backward graph.

    `edges` are `(node, output number)` or None per input; `seq` orders nodes: every node is
    younger than those its edges lead to. `outs` are the Geometries of its outputs.
    `saved` are `(tensor, version, output number or None)`, None once freed.
    """

    __slots__ = ("__dict__", "__weakref__")
    __module__ = "mindtorch.autograd.graph"
    edges: Any
    outs: Any
    saved: Any
    seq: int
    # Few nodes have these: class defaults cost nothing until one is set.
    hooks: dict[int, Any] | None = None
    prehooks: dict[int, Any] | None = None
    tensor_hooks: dict[int, dict[int, Any]] | None = None

    def __init__(self) -> None:
        self.seq = next(counter)
        self.edges = ()
        self.outs = ()
        self.saved = ()

    label = ""  # torch's name, where it is not the class's

    def name(self) -> str:
        return self.label or type(self).__name__

    _place = ""  # the module that torch's text names

    def __repr__(self) -> str:
        return f"<{self._place}{self.name().rpartition('::')[2]} object at {id(self):#x}>"

    def _sequence_nr(self) -> int:
        return self.seq

    @property
    def metadata(self) -> dict[str, Any]:
        return self.__dict__.setdefault("_metadata", {})

    @property
    def _input_metadata(self) -> tuple[_InputMetadata, ...]:
        return tuple(
            _InputMetadata(list(g.shape), g.dtype, g.device)
            for g in self.outs
            if g.dtype.category >= FLOAT
        )

    @property
    def next_functions(self) -> tuple[Any, ...]:
        edges = self.next_edges()
        return tuple((None, 0) if e is None else (public_node(e[0]), e[1]) for e in edges)

    def next_edges(self) -> tuple[Any, ...]:
        """The edges that programs see; `inputs` of a composite that is one operator in torch."""
        return tuple(vars(self).get("inputs", self.edges))

    def apply(self, grads: list[Any]) -> Any:
        """Gradients for `edges`, in order, from those of the outputs (None: undefined)."""
        raise NotImplementedError

    def free(self) -> None:
        """Drop what was saved: the graph has been used up."""
        if self.saved:
            self.saved = None

    def saved_order(self) -> range:
        """The places of `saved` in the order in which torch reads them."""
        return range(len(self.saved or ()))

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors with the version they have now."""
        self.saved = tuple(keep(t, None) if t is not None else None for t in tensors)

    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What was saved, checked; RuntimeError if it was freed or written to since."""
        if self.saved is None:
            raise RuntimeError(FREED)
        return tuple(None if s is None else self.unpack(s) for s in self.saved)

    def unpack(self, saved: Any) -> Tensor:
        """One saved tensor; RuntimeError in torch's words if it was written to since."""
        tensor, version, number = saved
        if tensor.__class__ is Packed:
            return tensor.unpack(self, number)
        if tensor._storage.value != version:
            raise RuntimeError(_modified(self, tensor, version, number))
        if number is None:
            return tensor
        alias = _alias(tensor) if number else detached(tensor)
        alias._fn = self
        alias._nr = number
        if MODES.active and "_tangent" in vars(tensor):
            vars(alias)["_tangent"] = vars(tensor)["_tangent"]
        return alias

    def __call__(self, *grads: Tensor | None) -> Any:
        """Gradients for `next_functions` from those of the outputs; a single one as it is."""
        if len(grads) != len(self.outs):
            raise TypeError(f"expected {len(self.outs)} arguments, got {len(grads)} instead")
        for i, value in enumerate(grads):
            if not (value is None or isinstance(value, Tensor)):
                raise TypeError(f"argument {i} is not a Variable")
        results = tuple(self.apply(list(grads)))
        return results[0] if len(results) == 1 else results

    requires_grad = True

    def __dir__(self) -> list[str]:
        return [*object.__dir__(object()), *self._attributes(), *_PUBLIC]

    def _attributes(self) -> tuple[str, ...]:
        """What `dir` shows beside what all nodes have."""
        return tuple(n for n in vars(self) if not n.startswith("_"))

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this node is applied."""
        if self.hooks is None:
            self.hooks = {}
        return add_hook(self.hooks, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this node is applied."""
        if self.prehooks is None:
            self.prehooks = {}
        return add_hook(self.prehooks, fn)


_PUBLIC = (
    "_input_metadata", "_register_hook_dict", "_sequence_nr", "_set_sequence_nr", "metadata",
    "name", "next_functions", "register_hook", "register_prehook", "requires_grad",
)  # fmt: skip
_CLASSES: dict[tuple[type, str], type] = {}


def public_node(node: Any) -> Any:
    """`node` as programs see it: its class bears its name, which follows from the arguments.

    A row has one class of nodes, torch one for each overload. The class changes when a program
    first asks for the node, because recording has no time for it.
    """
    name = node.name().rpartition("::")[2]
    cls = node.__class__
    if cls.__name__ != name and isinstance(node, Node):
        key = cls, name
        if key not in _CLASSES:
            _CLASSES[key] = type(name, (cls,), {"__slots__": (), "__module__": "builtins"})
        node.__class__ = _CLASSES[key]
    return node


class GradientEdge(NamedTuple):
    """The node that a gradient goes to, and as which of its outputs' gradients."""

    node: Any
    output_nr: int
    ownership_token: Any = None


class Packed:
    """A saved tensor that user hooks hold (torch.autograd.graph.saved_tensors_hooks)."""

    __slots__ = ("back", "edge", "packed", "unpack_hook")

    def __init__(self, tensor: Tensor, hooks: Any, number: int | None, seen_as: Any = None):
        self.back: Callable[[Tensor], Tensor] | None = None
        self.edge = (None, 0) if number is not None else (tensor._fn, tensor._nr)
        version = tensor._storage.value
        with no_grad():
            if seen_as is not None:
                tensor, self.back = aten._unseen(seen_as, tensor)
            self.packed = hooks[0](tensor)
        if tensor._storage.value != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as"
                " input to pack hook cannot be modified by in-place operations as this can lead to"
                " unexpected side-effects. Please open an issue if you need to perform in-place"
                " operations on the input to a pack hook."
            )
        self.unpack_hook = hooks[1]

    def unpack(self, node: Node, number: int | None) -> Tensor:
        tensor = self.unpack_hook(self.packed)
        if not isinstance(tensor, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type"
                f" {type(tensor).__name__}"
            )
        if self.back is not None:
            with no_grad():
                tensor = aten._unseen(self.back, tensor)
        if number is None and self.edge[0] is None and tensor._fn is None:
            return tensor
        alias = _alias(tensor)
        alias._fn, alias._nr = self.edge if number is None else (node, number)
        return alias


def keep(tensor: Tensor, number: int | None, seen_as: Any = None) -> tuple[Any, int, int | None]:
    """`tensor` with its version; an output (`number`) is kept without its node: no cycle.

    `seen_as` gives the tensor as hooks see it, and what makes the saved one of theirs.
    """
    if LOCAL.pack:
        return (Packed(tensor, LOCAL.pack[-1], number, seen_as), 0, number)
    if tensor._fn is INFERENCE and not LOCAL.derivatives:
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in"
            " inference mode in computation tracked by autograd. To work around this, you can make"
            " a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()`"
            " instead of `torch.inference_mode()`."
        )
    if number is None:
        return (tensor, tensor._storage.value, None)
    alias = _alias(tensor) if number else detached(tensor)
    return (alias, tensor._storage.value, number)


def _alias(tensor: Tensor) -> Tensor:
    """The same memory without history; a wrapper's is one of its class."""
    memory: object = tensor._storage
    if not isinstance(memory, NoMemory):
        return wrap(tensor._geom, tensor._storage)
    alias = object.__new__(type(tensor))
    alias.__dict__.update(tensor.__dict__)
    alias._geom, alias._storage, alias._fn, alias._base = tensor._geom, tensor._storage, None, None
    return alias


def detached(tensor: Tensor) -> Tensor:
    """The same memory without history; a dispatch mode sees it made."""
    if MODES.active and LOCAL.dispatches and not LOCAL.derivatives:
        view: Tensor = DOOR["through_mode"]("detach", tensor)
        if view is not tensor:
            return view
    return wrap(tensor._geom, tensor._storage)


def read_at_once(node: Node) -> None:
    """Where hooks hold what `node` saved, it reads all of it once and in order, before its step."""
    if LOCAL.pack:
        node.__class__ = _reading(type(node))


_READING: dict[type[Node], type[Node]] = {}


def _reading(cls: type[Node]) -> type[Node]:
    if cls in _READING:
        return _READING[cls]

    def apply(node: Node, grads: list[Any]) -> Any:
        saved = node.saved
        if saved is not None:
            read = {place: _unpack(node, saved[place]) for place in node.saved_order()}
            node.saved = tuple(read[place] for place in range(len(saved)))
        try:
            return cls.apply(node, grads)
        finally:
            node.saved = saved

    members = {"__slots__": (), "__module__": cls.__module__, "apply": apply}
    reading = type(cls.__name__, (cls,), members)
    _READING[cls] = _READING[reading] = reading
    return reading


def _unpack(node: Node, saved: Any) -> Any:
    if isinstance(saved, list):
        return [_unpack(node, k) for k in saved]
    if type(saved) is not tuple:
        return saved
    tensor = node.unpack(saved)
    return (tensor, tensor._storage.value, None)


_FREED_BEFORE_HOOKS = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values"
    " of the graph are freed when you call .backward() or autograd.grad(). Specify"
    " retain_graph=True if you need to backward through the graph a second time or if you need to"
    " access saved variables after calling backward."
)
_HOOKED_BEFORE = (
    "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one"
    " pair of hooks is allowed at a time."
)


def refuse_uncallable(
    name: str, hooks: tuple[Any, ...], receiver: str = "", shown_receiver: str = ""
) -> None:
    """TypeError in torch's words for hooks of saved tensors that are not two functions."""
    if len(hooks) == 2 and all(map(callable, hooks)):
        return
    raise TypeError(
        f"{name}(): incompatible function arguments. The following argument types are supported:\n"
        f"    1. ({receiver}arg0: collections.abc.Callable, arg1: collections.abc.Callable) -> None"
        f"\n\nInvoked with: {shown_receiver}{', '.join(map(repr, hooks))}"
    )


class SavedTensor:
    """What a node keeps at a place: hooks may stand before it, once."""

    def __init__(self, node: Node, place: int):
        self._node, self._place = node, place

    def register_hooks(self, *hooks: Callable[..., Any]) -> None:
        """`(pack_hook, unpack_hook)`: keep what the first makes of the tensor; the second makes it
        again when read."""
        refuse_uncallable(
            "register_hooks", hooks, "self: torch._C._autograd.SavedTensor, ", f"{self!r}, "
        )
        node = self._node
        if node.saved is None:
            raise RuntimeError(_FREED_BEFORE_HOOKS)
        tensor, _, number = node.saved[self._place]
        if tensor.__class__ is Packed:
            raise RuntimeError(_HOOKED_BEFORE)
        saved = list(node.saved)
        saved[self._place] = (Packed(tensor, hooks, number), 0, number)
        node.saved = tuple(saved)
        node.__class__ = _reading(type(node))

    @property
    def data(self) -> Any:
        """The tensor, or what its pack hook made of it."""
        if self._node.saved is None:
            raise RuntimeError(FREED)
        value = self._node.saved[self._place][0]
        return value.packed if value.__class__ is Packed else value

    @property
    def unpack_hook(self) -> Callable[..., Any] | None:
        """The hook that makes the tensor again; None without hooks."""
        value = (self._node.saved or {self._place: (None,)})[self._place][0]
        return value.unpack_hook if value.__class__ is Packed else None

    def unpack(self) -> Tensor:
        """The tensor; RuntimeError if it was freed or written to since."""
        if self._node.saved is None:
            raise RuntimeError(FREED)
        return self._node.unpack(self._node.saved[self._place])


SavedTensor.__module__ = "torch._C._autograd"


def display_name(node: Any) -> str:
    """A node's name as errors give it."""
    name: str = node.name()
    return name[: name.rfind("Backward")] if "Backward" in name else name


class AnomalyState:
    """Whether steps of backward are watched, and their results searched for NaN.

    `mark` gives the lines of the program to the nodes of what a call gave.
    """

    __slots__ = ("check_nan", "mark", "on")

    def __init__(self) -> None:
        self.on = False
        self.mark: Callable[..., None] | None = None
        self.check_nan = True


STATE = AnomalyState()


def _saved_transposed(node: Node, tensor: Tensor) -> bool:
    """Whether it is the weight of a linear layer, of which torch keeps the transpose."""
    op = getattr(node, "op", None)
    return (
        op is not None
        and op.base_name == "linear"
        and len(node.saved) > 1
        and node.saved[1][0] is tensor
    )


def _modified(node: Node, tensor: Tensor, version: int, number: int | None) -> str:
    geom, fn = tensor._geom, tensor._fn
    shape, base = list(geom.shape), tensor._base
    if _saved_transposed(node, tensor):
        shape, base = shape[::-1], tensor
    if number is not None:
        origin = f", which is output {number} of {display_name(node)},"
    elif base is not None and base._fn is not None and tensor._creation is None:
        # torch makes the history of a view again once its base was written to.
        origin = ", which is output 0 of AsStrided,"
    elif fn is not None and not isinstance(fn, AccumulateGrad | Sentinel):
        origin = f", which is output {tensor._nr} of {display_name(fn)},"
    else:
        origin = ""
    where = "" if geom.device.type == "cpu" else f"{geom.device.type}."
    return (
        "one of the variables needed for gradient computation has been modified by an inplace"
        f" operation: [torch.{where}{geom.dtype.legacy}Tensor {shape}]{origin}"
        f" is at version {tensor._storage.value}; expected version {version} instead. Hint:"
        f" {_TRACED if STATE.on else _UNTRACED}"
    )


_UNTRACED = (
    "enable anomaly detection to find the operation that failed to compute its gradient, with"
    " torch.autograd.set_detect_anomaly(True, check_nan=False)."
)
_TRACED = (
    "the backtrace further above shows the operation that failed to compute its gradient. The"
    " variable in question was changed in there or anywhere later. Good luck!"
)


class AccumulateGrad(Node):
    """Where a leaf's gradient ends: adds it to `.grad`. Holds the leaf weakly, its memory not."""

    __module__ = "builtins"
    __slots__ = ("kind", "memory", "post_hooks", "variable_ref")

    def __init__(self, variable: Tensor):
        self.seq = LEAF + next(counter)
        self.edges = ()
        self.saved = ()
        self.outs = (variable._geom,)
        self.kind, self.memory = type(variable), variable._storage
        self.variable_ref = ref(variable)
        self.post_hooks: dict[int, Any] | None = None

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def _attributes(self) -> tuple[str, ...]:
        return ("variable",)

    @property
    def variable(self) -> Tensor:
        """The leaf; made again of its memory where only the graph still has it."""
        variable = self.variable_ref()
        if variable is None:
            variable = wrap(self.outs[0], self.memory)
            variable.__class__ = self.kind
            variable._fn = self
            self.variable_ref = ref(variable)
        return variable

    def apply(self, grads: list[Any]) -> Any:
        variable = self.variable_ref()
        if variable is None or grads[0] is None:
            return ()
        accumulate(variable, grads)
        if self.post_hooks:
            for hook in list(self.post_hooks.values()):
                result = hook(variable)
                if result is None or result is variable:
                    continue
                if not isinstance(result, Tensor):
                    kind = type(result).__name__
                    raise TypeError(f"expected Variable, but hook returned '{kind}'")
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")
        return ()


def added(first: Tensor, grad: Tensor) -> Tensor:
    """The sum of two gradients, of which either may be sparse: sparse only where both are."""
    if first.__class__ is Tensor is grad.__class__:
        return aten.add(first, grad)
    if first.is_sparse or grad.is_sparse:
        return grad + first if first.is_sparse else first + grad
    return aten.add(first, grad)


def accumulate(variable: Tensor, grads: list[Any]) -> None:
    """Add `grads[0]` to `variable.grad`, never sharing memory with a tensor someone else holds."""
    existing = variable._grad
    grad = grads[0]
    if grad.is_sparse or (existing is not None and existing.is_sparse):
        variable._grad = _accumulated_sparse(existing, grad)
    elif existing is not None:
        variable._grad = aten.add(existing, grad) if LOCAL.grad else existing.add_(grad)
    elif LOCAL.grad:
        variable._grad = _laid_out_like(variable, grad)
    elif MODES.active and LOCAL.dispatches and grad._geom.strides == variable._geom.strides:
        variable._grad = detached(grad)
    elif (
        grad._base is None
        and grad._geom.strides == variable._geom.strides
        and getrefcount(grad) == _UNSHARED
        and getrefcount(grad._storage) == _UNSHARED - 1
    ):
        variable._grad = wrap(grad._geom, grad._storage) if grad._fn is not None else grad
    else:
        variable._grad = _laid_out_like(variable, grad)


def _accumulated_sparse(existing: Tensor | None, grad: Tensor) -> Tensor:
    if existing is None:
        values: Tensor = getattr(grad, "_values")()  # noqa: B009 (of sparse tensors alone)
        grad = grad if values.is_contiguous() else grad.clone()  # a sum's are one number, expanded
        return grad if LOCAL.grad else grad.detach()
    if existing.is_sparse and grad.is_sparse and not LOCAL.grad:
        return existing.add_(grad)
    if LOCAL.grad or existing.is_sparse:
        return existing + grad if grad.is_sparse else added(existing, grad)
    return existing.add_(grad)


# `grads`, the local name and getrefcount's argument; a storage has one holder less.
_UNSHARED = 3


def _laid_out_like(variable: Tensor, grad: Tensor) -> Tensor:
    geom = variable._geom
    same = grad._geom.strides == geom.strides and grad._fn is None
    if same or not geom.dense or DOOR["is_wrapper"](grad):
        return aten.clone(grad)
    if MODES.active and LOCAL.dispatches:
        laid_out = DOOR["operator_of_mode"](
            "new_empty_strided",
            (grad, list(geom.shape), list(geom.strides)),
            {"dtype": grad.dtype, "layout": DOOR["strided"], "device": grad.device},
        )
        laid_out.copy_(grad)
        return laid_out
    laid_out = aten.empty_strided(geom.shape, geom.strides, dtype=grad.dtype, device=grad.device)
    laid_out.copy_(grad)
    return laid_out


class Sentinel:
    """Stands in a tensor's `_fn` for something that the slow path must look at."""

    __slots__ = ("text",)

    def __init__(self, text: str):
        self.text = text

    # It is shared: a name given to one tensor's history is dropped.
    label = property(lambda self: "", lambda self, name: None)


STALE = Sentinel("a view whose base was written to: its history is made again when asked for")
INFERENCE = Sentinel("made in inference mode")
inherit(INFERENCE)
