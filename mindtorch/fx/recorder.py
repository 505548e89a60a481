"""Owns tracing by running: calls on tensors without memory become nodes of a graph.

A traced tensor is a Tensor for `isinstance`, shapes, dtypes and devices. A call runs on the meta
device and becomes a node; what asks for values goes to `break_graph`. Sizes that may change are
traced with several values at once: what differs between them depends on the size.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Protocol

from .._autograd.function import run_forward
from .._dispatch.overrides import EVERY, TorchFunctionMode, _as_composite, _public
from .._tensor.device import device as Device
from .._tensor.geometry import geometry
from .._tensor.no_memory import NoMemory
from .._tensor.subclass import ASKING_OPERATORS, asking, asking_operator
from .._tensor.tensor import Tensor
from ..nn.modules.module import Module
from ..ops.spec import Op
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten
from .fake import FACTORIES, OF_UNKNOWN_SIZE, SLOTS, default_mode, meta_like, outside
from .graph import Graph
from .node import Node, Target

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]
Function = Callable[..., Any]
_NO_MEMORY: Any = NoMemory("a traced tensor has no values")
# Methods that ask for values, or for what autograd records of a tensor.
READING = frozenset((
    "__array__", "__bool__", "__complex__", "__contains__", "__float__", "__format__", "__index__",
    "__int__", "__repr__", "backward", "data_ptr", "item", "numpy", "register_hook", "retain_grad",
    "storage", "tolist", "untyped_storage",
))  # fmt: skip


class Untraceable(RuntimeError):
    """A program asks a traced tensor for its history."""


class UntraceableTransform(Untraceable):
    """A function of torch.func asks."""


class UntraceableFunction(RuntimeError):
    """A function of a higher-order operator is no graph."""


def _one_tuple(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sizes as one argument, where they are one size of a class of its own."""
    return (sizes,) if len(sizes) == 1 and isinstance(sizes[0], int) else sizes


class TracedTensor(Tensor):
    """Stands for a node's value; `_real` is the tensor that it became, None until there is one."""

    _composites = EVERY
    _recorder: GraphRecorder
    _metas: tuple[Tensor, ...]
    _real: Tensor | None
    _node: Node
    __getattribute__ = asking(Tensor)

    @classmethod
    def __torch_function__(
        cls, func: Function, types: Sequence[type], args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        return _recorder_of((args, kwargs)).function(func, args, kwargs or {})

    @staticmethod
    def _row_call(op: Op, form: str, raw: Sequence[Any]) -> Any:
        return _recorder_of(tuple(raw)).row(op, form, raw)

    @staticmethod
    def _operator_call(operator: Function, args: Sequence[Any], kwargs: Keywords) -> Any:
        """A call of an operator of the program's own, which is a node."""
        spelling = "call_function", operator, tuple(args), kwargs
        recorder = _recorder_of((args, kwargs))
        return recorder.call(None, "", operator, tuple(args), kwargs, spelling)

    @staticmethod
    def _function_call(function: type[Any], args: Arguments, kwargs: Keywords) -> Any:
        """A call of an autograd Function."""
        return _recorder_of((args, kwargs)).own_function(function, args, kwargs)

    @property
    def _fn(self) -> Any:
        asker = str(sys._getframe(2).f_globals.get("__name__", ""))
        if not asker.startswith(("mindtorch._autograd", "mindtorch.autograd", "mindtorch.func")):
            return None  # a row's entry, which finds no plan for a traced tensor
        kind = UntraceableTransform if asker.startswith("mindtorch.func") else Untraceable
        raise kind("mindtorch traces no gradients: compute them outside of what is traced")

    @_fn.setter
    def _fn(self, value: object) -> None:
        """Nothing: a traced tensor has no history."""

    @property
    def requires_grad(self) -> bool:
        return bool(self._metas[0].requires_grad)

    @property
    def shape(self) -> Any:
        return self._recorder.sizes(self)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one of its sizes."""
        Tensor.size(self._metas[0], dim)  # IndexError
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        """The product of the sizes, which follows those that may change."""
        return prod(self.shape)

    nelement = numel

    __hash__ = Tensor.__hash__


def _of_sizes(name: str) -> Callable[..., Any]:
    """A method that takes sizes one by one."""

    def method(self: TracedTensor, *sizes: object, **options: object) -> Any:
        return getattr(Tensor, name)(self, *_one_tuple(sizes), **options)

    return method


TracedTensor.__name__ = "Tensor"  # to programs
for _name in ("expand", "repeat", "reshape", "view"):
    type.__setattr__(TracedTensor, _name, _of_sizes(_name))
for _name in ASKING_OPERATORS:
    type.__setattr__(TracedTensor, _name, asking_operator(Tensor, _name))


def _recorder_of(values: object) -> GraphRecorder:
    leaves, _ = tree_flatten(values)
    return next(v._recorder for v in leaves if isinstance(v, TracedTensor))


class InnerTrace(Protocol):
    """The trace of a function inside of another trace."""

    def capture(self, tensor: Tensor) -> Node:
        """The placeholder of a tensor of the trace around it."""


class Naming:
    """How functions of higher-order operators are named, and their inputs; those of
    `named_operands` have the names of the operands."""

    submodule_names: Mapping[str, tuple[str, ...]] = {
        "cond": ("true_graph", "false_graph"), "map": ("body_graph",),
        "scan": ("scan_combine_graph",),
        "while_loop": ("while_loop_cond_graph", "while_loop_body_graph"),
    }  # fmt: skip
    operand_name = "arg{}_1"
    notes_lines = True  # whether nodes say where the program calls
    named_operands: tuple[str, ...] = ()


class GraphRecorder(Naming, TorchFunctionMode):
    """Turns calls into nodes; subclasses say how a call is spelled, and what a break does.

    `versions` is how many values a size that may change has.
    """

    versions = 1
    value_key = "val"  # of a node's fake tensor in its `meta`

    def __init__(self) -> None:
        self.nested: InnerTrace | None = None
        self.results: list[weakref.ref[TracedTensor]] = []
        self.metas: dict[int, tuple[Tensor, tuple[Tensor, ...]]] = {}
        self.start()

    def start(self) -> None:
        """Begin a graph."""
        self.graph, self.root = Graph(), Module()
        self.lifted: dict[int, tuple[Tensor, Node]] = {}
        self.inputs: list[Tensor] = []

    def break_graph(self, func: Function | str) -> None:
        """A function asks for values: leave them in `_real` of all traced tensors, or raise."""
        raise NotImplementedError

    def lift(self, tensor: Tensor) -> Node:
        """The node of a tensor that no call of this graph made."""
        raise NotImplementedError

    def spelled(
        self,
        op: Op | None,
        form: str,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[str, Target, Arguments, Keywords]:
        """Kind of node, target and arguments of a call."""
        raise NotImplementedError

    def sizes(self, tensor: TracedTensor) -> Any:
        """What a program sees as the tensor's shape."""
        return tensor._metas[0].shape

    def row(self, op: Op, form: str, raw: Sequence[Any]) -> Any:
        """A row's call."""
        args, kwargs = _as_composite(op, raw)
        form = "inplace" if form == "augmented" else form
        return self.call(op, form, _public(op, form), args, kwargs)

    def function(self, func: Function, args: Arguments, kwargs: Keywords) -> Any:
        """A call of a function that is no row."""
        return self.call(None, "", func, args, kwargs)

    def own_function(self, function: type[Any], args: Arguments, kwargs: Keywords) -> Any:
        """A call of an autograd Function, whose `forward` is traced."""
        return run_forward(function, function._node_class(), args, kwargs)

    def __torch_function__(
        self, func: Function, types: Sequence[type], args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        return self.function(func, args, kwargs or {})

    def call(
        self,
        op: Op | None,
        form: str,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        spelling: tuple[str, Target, Arguments, Keywords] | None = None,
    ) -> Any:
        """Run a call on meta tensors, and add its node where it gives tensors."""
        name = getattr(func, "__name__", "")
        if name in READING or name in OF_UNKNOWN_SIZE:
            self.break_graph(func)
            return self.on_real(func, args, kwargs)
        try:
            results = [self.on_meta(name, func, args, kwargs, k) for k in range(self.versions)]
        except NotImplementedError:
            self.break_graph(func)
            return self.on_real(func, args, kwargs)
        leaves = [tree_flatten(r)[0] for r in results]
        if not any(isinstance(leaf, Tensor) for leaf in leaves[0]):
            return self.plain(results)
        spelling = spelling or self.spelled(op, form, func, args, kwargs)
        kind, target, node_args, node_kwargs = spelling
        node_args, node_kwargs = tree_map(self.argument, (node_args, node_kwargs))
        node = self.add_node(kind, target, tuple(node_args), node_kwargs)
        return self.wrapped(node, results, leaves, args, kwargs)

    def add_node(self, kind: str, target: Target, args: Arguments, kwargs: Keywords) -> Node:
        """A node of the graph."""
        return self.graph.create_node(kind, target, args, kwargs)

    def plain(self, results: Sequence[object]) -> object:
        """A result without tensors."""
        return results[0]

    def argument(self, value: object) -> object:
        """A node's argument: tensors are nodes."""
        return self.node_of(value) if isinstance(value, Tensor) else value

    def node_of(self, tensor: Tensor) -> Node:
        """The node of a tensor; others than this graph's own are lifted."""
        if isinstance(tensor, TracedTensor) and tensor._node.graph is self.graph:
            return tensor._node
        if self.nested is not None:
            return self.nested.capture(tensor)
        real = real_of(tensor)
        if id(real) not in self.lifted:
            self.lifted[id(real)] = tensor, self.lift(tensor)
        return self.lifted[id(real)][1]

    def metas_of(self, tensor: Tensor) -> tuple[Tensor, ...]:
        """Stand-ins of a tensor on the meta device."""
        if isinstance(tensor, TracedTensor):
            return tensor._metas
        if id(tensor) not in self.metas:
            self.metas[id(tensor)] = tensor, (meta_like(tensor, tensor.shape),) * self.versions
        return self.metas[id(tensor)][1]

    def on_meta(
        self,
        name: str,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        version: int,
    ) -> Any:
        """A call's result on stand-ins."""

        def stand_in(value: object) -> Any:
            if isinstance(value, Tensor):
                return self.metas_of(value)[version]
            if isinstance(value, Device):
                return Device("meta")
            return self.value_of(value, version)

        args, kwargs = tree_map(stand_in, (args, kwargs))
        if isinstance(kwargs.get("device"), str):
            kwargs = {**kwargs, "device": "meta"}
        if name == "to" and isinstance(args[1], str):
            args = (args[0], "meta", *args[2:])
        if name in ("cpu", "npu", "cuda"):
            return args[0].view_as(args[0])
        with outside():
            if name in FACTORIES and "device" not in kwargs:
                kwargs = {**kwargs, "device": "meta"}
            return func(*args, **kwargs)

    def value_of(self, value: object, version: int) -> object:
        """What is no tensor."""
        return value

    def on_real(self, func: Function, args: Arguments, kwargs: Keywords) -> Any:
        """A call with the tensors that traced ones became."""
        args, kwargs = tree_map(real_of, (args, kwargs))
        with outside():
            return func(*args, **kwargs)

    def wrapped(
        self,
        node: Node,
        results: Sequence[object],
        leaves: Sequence[list[Any]],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """The results as traced tensors; a tensor that was written is given again."""
        target = args[0] if args and isinstance(args[0], Tensor) else None
        if target is not None and results[0] is self.metas_of(target)[0]:
            self.written(target, node)
            return target
        device = _device_of(args, kwargs)
        _, spec = tree_flatten(results[0])
        outs = []
        for at, metas in enumerate(zip(*leaves, strict=True)):
            if not isinstance(metas[0], Tensor):
                outs.append(metas[0])
                continue
            alone = isinstance(results[0], Tensor)
            part = node if alone else self.getitem(node, at)
            outs.append(self.traced(metas, part, device))
        return tree_unflatten(outs, spec)

    def written(self, tensor: Tensor, node: Node) -> None:
        """A call wrote to a tensor: its node gives it from now on."""
        inside = isinstance(tensor, TracedTensor) and tensor._node.graph is self.graph
        if self.nested is not None and not inside:
            raise UntraceableFunction("a function writes to a tensor around it")
        self.note_value(tensor, node)
        if isinstance(tensor, TracedTensor):
            tensor._node = node
        else:
            self.lifted[id(tensor)] = tensor, node

    def note_value(self, tensor: Tensor, node: Node) -> None:
        """Keep what is known of a tensor in its node."""
        value = default_mode().stand_in(self.metas_of(tensor)[0], tensor._geom.device)
        node.meta.setdefault(self.value_key, value)

    def getitem(self, node: Node, at: int) -> Node:
        """The node of one of several results."""
        import operator

        return self.graph.create_node("call_function", operator.getitem, (node, at), {})

    def traced(self, metas: tuple[Tensor, ...], node: Node, device: Device) -> TracedTensor:
        """The tensor that stands for a node."""
        tensor: TracedTensor = object.__new__(TracedTensor)
        geom = metas[0]._geom
        tensor._geom = geometry(geom.shape, geom.strides, geom.offset, geom.dtype, device)
        tensor._storage, tensor._nr, tensor._base = _NO_MEMORY, 0, None
        tensor._recorder, tensor._metas, tensor._real = self, metas, None
        tensor._node = node
        self.results.append(weakref.ref(tensor))
        node.meta.setdefault(self.value_key, default_mode().stand_in(metas[0], device))
        return tensor


def real_of(value: Any) -> Any:
    """The tensor that a traced one became; all else as it is."""
    if isinstance(value, TracedTensor) and value._real is not None:
        return value._real
    return value


def become(tensor: TracedTensor, real: Tensor) -> None:
    """Turn a traced tensor into the plain one that it stands for."""
    values = {name: getattr(real, name) for name in SLOTS}
    tensor.__dict__.clear()
    object.__setattr__(tensor, "__class__", Tensor)
    for name, value in values.items():
        if value is not None or name in ("_base", "_fn"):
            setattr(tensor, name, value)


def _device_of(args: Arguments, kwargs: Keywords) -> Device:
    leaves, _ = tree_flatten((args, kwargs))
    named = kwargs.get("device")
    devices = [v for v in leaves if isinstance(v, Device)]
    if named is not None or devices:
        return Device(named if isinstance(named, str) else devices[0])
    return next((v._geom.device for v in leaves if isinstance(v, Tensor)), Device("cpu"))
