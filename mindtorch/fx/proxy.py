"""Owns values that stand for a graph's nodes while a function is traced, and who makes them."""

from __future__ import annotations

import copy
import dis
import enum
import operator
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, cast

from .._autograd.scope import StepScope as _Scope
from .._dispatch.overrides import is_tensor_method_or_property
from .._tensor.tensor import Tensor
from .call_sites import as_called_by_python, stack_text
from .graph import Graph, magic_methods, reflectable_magic_methods
from .immutable_collections import (
    immutable_dict as immutable_dict,
    immutable_list as immutable_list,
)
from .node import Node, Target, base_types, map_aggregate
from .operator_schemas import refuse_mutable
from .traceback import note_current

__all__ = ["Attribute", "GraphAppendingTracer", "Node", "ParameterProxy", "Proxy", "Scope",
           "ScopeContextManager", "TraceError", "TracerBase", "assert_fn",
           "magic_methods", "reflectable_magic_methods"]  # fmt: skip


class TraceError(ValueError):
    """A program asks a traced value what only a number can tell."""


class Scope:
    """Which module is being called: its path and its class."""

    module_path: str
    module_type: object

    def __init__(self, module_path: str, module_type: object):
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager(_Scope):
    """Inside, the scope is another."""

    def __init__(self, scope: Scope, current_scope: Scope):
        super().__init__()
        self._scope, self._inner = scope, current_scope

    def steps(self) -> Iterator[Scope]:
        before = Scope(self._scope.module_path, self._scope.module_type)
        self._scope.module_path = self._inner.module_path
        self._scope.module_type = self._inner.module_type
        try:
            yield self._scope
        finally:
            self._scope.module_path = before.module_path
            self._scope.module_type = before.module_type


def assert_fn(x: object) -> None:
    """AssertionError where `x` is not true."""
    if not x:
        raise AssertionError


class TracerBase:
    """Makes nodes and their proxies; subclasses say what a program may do with those."""

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: dict[str, Any]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: object = None,
    ) -> Node:
        """A node of the graph, with the modules that were being called.

        RuntimeError for a function that writes, where `check_mutable_operations`.
        """
        if kind == "call_function" and self.check_mutable_operations:
            refuse_mutable(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        stack = getattr(self, "module_stack", None)
        if stack:
            node.meta["nn_module_stack"] = copy.copy(stack)
        note_current(node)
        if self.record_stack_traces and node.stack_trace is None and (text := stack_text()):
            node.stack_trace = text
        return node

    def proxy(self, node: Node) -> Proxy:
        """The value that stands for a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: object = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """A node of these arguments, proxies among them, and the value that stands for it."""
        made_args, made_kwargs = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(made_args, tuple) or not isinstance(made_kwargs, dict):
            raise AssertionError("create_arg changed the kind of args or kwargs")
        node = self.create_node(kind, target, made_args, made_kwargs, name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: object) -> Any:
        """An argument as a node holds it; NotImplementedError for what no graph can hold."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            values = tuple(self.create_arg(x) for x in a)
            return self.create_node("call_function", type(a), values, {})
        if isinstance(a, tuple):
            return tuple(self.create_arg(x) for x in a)
        if is_dataclass(a) and not isinstance(a, type):
            parts = {f.name: self.create_arg(getattr(a, f.name)) for f in fields(a)}
            return self.create_node("call_function", type(a), (), parts)
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            return {self._key(k): self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(*(self.create_arg(x) for x in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*(self.create_arg(x) for x in (a.start, a.stop, a.step)))
        if isinstance(a, (Node, enum.Enum, *base_types)) or callable(a) or _is_plain(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: object) -> Any:
        key_arg = self.create_arg(key)

        def refuse(x: object) -> Any:
            if isinstance(x, Node):
                raise RuntimeError(
                    "Keys for dictionaries used as an argument cannot contain a"
                    f" Node. Got key: {key}"
                )
            return x

        map_aggregate(key_arg, refuse)
        return key_arg

    def to_bool(self, obj: Proxy) -> bool:
        """TraceError: what is not computed is neither true nor false."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """TraceError: how many elements there are is not known."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a"
            " loop or as a *args or **kwargs function argument. See the torch.fx docs on"
            " pytorch.org for a more detailed explanation of what types of control flow can be"
            " traced, and check out the Proxy docstring for help troubleshooting Proxy iteration"
            " errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """What `**proxy` asks for: a call of its method."""
        return Attribute(obj, "keys")()


def _is_plain(a: object) -> bool:
    import mindtorch as torch

    return isinstance(a, torch.layout | torch.memory_format | torch.Generator | torch.Size)


class GraphAppendingTracer(TracerBase):
    """Adds to a graph what is done with proxies of its nodes."""

    def __init__(self, graph: Graph):
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = {}


class Proxy:
    """Stands for a node's value: what a program does with it becomes nodes."""

    node: Any  # a Node; of an Attribute, once it is asked for
    _as_written = staticmethod(as_called_by_python)

    def __init__(self, node: Node, tracer: TracerBase | None = None):
        self.tracer: TracerBase = tracer or GraphAppendingTracer(cast(Graph, node.graph))
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k in _PROBED_NAMES:
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, d: dict[str, Any]) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        copied = self.__class__.__new__(self.__class__)
        copied.__dict__ = {"tracer": self.tracer, "node": self.node}
        return copied

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame: Any = sys._getframe(1)
        whole: Any = self
        for step in dis.get_instructions(frame.f_code):
            if step.offset == frame.f_lasti and step.opname == "UNPACK_SEQUENCE":
                return (whole[i] for i in range(step.argval))
        return self.tracer.iter(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and self._is_asserted(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    @staticmethod
    def _is_asserted(frame: Any) -> bool:
        steps = list(dis.get_instructions(frame.f_code))
        at = next(i for i, step in enumerate(steps) if step.offset == frame.f_lasti)
        after = steps[at + 1 : at + 3]
        return any(
            s.opname == "LOAD_ASSERTION_ERROR" or s.argval == "AssertionError" for s in after
        )

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be"
            " recorded, please call torch.fx.wrap('len') at module scope"
        )

    def keys(self) -> Any:
        """What `**proxy` asks for."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(
        cls,
        orig_method: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        tracers: dict[int, TracerBase] = {}

        def find(a: object) -> Any:
            if isinstance(a, Proxy):
                tracers[id(a.tracer)] = a.tracer
            return a

        map_aggregate((tuple(args), kwargs), find)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations"
                f" {orig_method}"
            )
        tracer = next(iter(tracers.values()))
        name = orig_method.__name__
        if is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", name, tuple(args), kwargs)
        target_name = tracer.graph._target_to_str(name)
        return tracer.create_proxy("call_function", orig_method, tuple(args), kwargs, target_name)


# What Python's own machinery and rows ask any object for; a node for it would be nobody's wish.
_PROBED_NAMES = frozenset({
    "_fn", "_geom", "_storage", "node", "tracer",
    "__array__", "__array_interface__", "__array_priority__", "__array_struct__", "__copy__",
    "__cuda_array_interface__", "__deepcopy__", "__dlpack__", "__float__", "__fx_create_arg__",
    "__getnewargs__", "__getnewargs_ex__", "__index__", "__int__", "__iter__", "__len__",
    "__length_hint__", "__wrapped__",
})  # fmt: skip


class Attribute(Proxy):
    """`proxy.name`: a node only once it is read, since most are called at once."""

    root: Proxy
    attr: str
    tracer: TracerBase

    def __init__(self, root: Proxy, attr: str):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Any:
        """The node of getattr, made when it is first asked for."""
        if self._node is None:
            read = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = read.node
        return self._node

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter's proxy, which knows its shape."""

    param: Tensor
    name: str

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Tensor):
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The parameter's."""
        return self.param.shape

    def size(self, *args: Any) -> Any:
        """The parameter's."""
        return self.param.size(*args)

    def dim(self) -> int:
        """The parameter's."""
        return int(self.param.dim())

    ndim = property(dim)

    def numel(self) -> int:
        """The parameter's."""
        return int(self.param.numel())

    def nelement(self) -> int:
        """The parameter's."""
        return int(self.param.numel())


def _operator(name: str) -> Callable[..., Any]:
    target = getattr(operator, name)

    def apply(*args: Any, **kwargs: Any) -> Any:
        return args[0].tracer.create_proxy("call_function", target, args, kwargs)

    apply.__name__ = f"__{name.strip('_')}__"
    return apply


def _reflected(name: str) -> Callable[..., Any]:
    target = getattr(operator, name)

    def apply(self: Proxy, other: object) -> Any:
        return self.tracer.create_proxy("call_function", target, (other, self), {})

    apply.__name__ = f"__r{name.strip('_')}__"
    return apply


for _name in magic_methods:
    if hasattr(operator, _name):
        setattr(Proxy, f"__{_name.strip('_')}__", _operator(_name))
for _name in reflectable_magic_methods:
    if hasattr(operator, _name) and _name != "getitem":
        setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(_name))
setattr(Proxy, "__hash__", object.__hash__)  # noqa: B010 - which `==` took away
