"""Owns one step of a graph: what it calls, with which arguments, and which steps use it."""

from __future__ import annotations

import builtins
import inspect
import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any, Protocol, TypeVar, cast

import mindtorch

from .._tensor.device import device
from .._tensor.dtype import dtype
from .._tensor.tensor import Tensor
from ..nn.modules.module import Module
from ..ops.namespaces import OpOverload, OpOverloadPacket, Tag, namespace
from .immutable_collections import immutable_dict, immutable_list

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

F = TypeVar("F", bound=Callable[..., Any])
Target = Callable[..., Any] | str
Argument = Any
base_types = (str, int, float, bool, complex, dtype, Tensor, device, type(None), type(...))
OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
_side_effectful_functions: set[Any] = {
    operator.setitem, namespace("aten")._assert_scalar.default,
    namespace("aten")._assert_tensor_metadata.default,
}  # fmt: skip


# Functions of torch that are kept for their effect: they check, or draw random numbers.
_IMPURE = frozenset((
    "_assert", "_assert_async", "bernoulli", "multinomial", "normal", "poisson", "rand",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
))  # fmt: skip


def _changes_something(function: Any, random: bool) -> bool:
    """Whether a call of the function does more than to give its result; with `random`, to draw
    random numbers is more."""
    if isinstance(function, OpOverloadPacket | OpOverload):
        overload = getattr(function, "default", function)
        schema = getattr(overload, "_schema", None)
        if schema is not None and schema.is_mutable:
            return True
        if random and Tag.nondeterministic_seeded in getattr(overload, "tags", ()):
            return True
    known: Callable[..., Any] | None = None
    if getattr(function, "__name__", None) in _IMPURE:
        known = getattr(mindtorch, function.__name__)
    return function is known or function in _side_effectful_functions


def has_side_effect(fn: F) -> F:
    """Mark a function as one whose calls stay, though nobody reads what they give."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: object, fn: Callable[[Any], Any]) -> Any:
    """`fn` of all that lies in tuples, lists, dicts and slices, in containers of the same kinds."""
    if isinstance(a, tuple):
        values = [map_aggregate(x, fn) for x in a]
        return type(a)(*values) if hasattr(a, "_fields") else tuple(values)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict({k: map_aggregate(v, fn) for k, v in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(x, fn) for x in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: object, fn: Callable[[Node], Any]) -> Any:
    """`fn` of each Node in containers; all else as it is."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


# Where functions are public, which may be defined elsewhere.
_PLACES = ("", ".nn.functional", ".linalg", ".special", ".fft", ".functional")
# Functions of torch that are torch.functional's.
_OF_FUNCTIONAL = frozenset((
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_tensors", "cartesian_prod",
    "cdist", "chain_matmul", "einsum", "meshgrid", "norm", "split", "stft", "tensordot", "unique",
    "unique_consecutive",
))  # fmt: skip


def _public_name(func: Callable[..., Any]) -> str | None:
    """`torch.relu` for a function of torch; None for one that is not public there."""
    import importlib

    if getattr(mindtorch.Tensor, func.__name__, None) is func:
        return f"torch.Tensor.{func.__name__}"
    home = str(getattr(func, "__module__", None) or "mindtorch")
    if home.partition(".")[0] not in ("mindtorch", "torch"):
        return None
    base = func.__name__
    if inspect.isbuiltin(func):
        return f"{home}.{base}"
    layer = getattr(mindtorch.nn.functional, base, None) is func
    first = ".functional" if base in _OF_FUNCTIONAL else ".nn.functional" if layer else ""
    for place in (first, *_PLACES):
        module = importlib.import_module("mindtorch" + place)
        name = func.__name__.removeprefix(place[1:] + "_" if place else "")
        if getattr(module, name, None) is func:
            return f"torch{place}.{name}"
    return None


def _get_qualified_name(func: Callable[..., Any]) -> str:
    """The dotted name by which code calls a function: `torch.relu`, `operator.add`."""
    if isinstance(func, OpOverload | OpOverloadPacket):
        return f"torch.ops.{func}"
    if getattr(func, "namespace", None) == "higher_order":
        return f"torch.ops.higher_order.{func.__name__}"
    if getattr(builtins, func.__name__, None) is func:
        return func.__name__
    if (public := _public_name(func)) is not None:
        return public
    name = func.__name__
    if name == "<lambda>":
        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except Exception as error:
            raise RuntimeError("Unable to represent lambda") from error
    home = getattr(func, "__module__", None)
    if home is None:
        raise RuntimeError(f"cannot find module for {func}")
    top, dot, rest = home.partition(".")
    home = {"_operator": "operator", "mindtorch": "torch"}.get(top, top) + dot + rest
    qualname = getattr(func, "__qualname__", name)
    return f"{home}.{name if '<locals>' in qualname else qualname}"


def _format_arg(arg: object, max_list_len: float = float("inf")) -> str:
    if hasattr(arg, "_custom_fx_repr_fn"):
        return str(arg._custom_fx_repr_fn())
    if isinstance(arg, list | tuple):
        parts = [_format_arg(a) for n, a in enumerate(arg) if n < max_list_len]
        more = f", ...[total_len={len(arg)}]" if len(arg) >= max_list_len + 1 else ""
        if isinstance(arg, list):
            return f"[{', '.join(parts)}{more}]"
        return f"({', '.join(parts)}{more}{',' if len(parts) == 1 else ''})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_format_arg(v)}" for k, v in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


def _type_repr(obj: object) -> str:
    """How an annotation is written: builtins by their names, others with their modules."""
    if isinstance(obj, type) and not getattr(obj, "__args__", None):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        home = obj.__module__
        home = "torch" + home.removeprefix("mindtorch") if home.startswith("mindtorch") else home
        is_torchs = obj in (Tensor, device, dtype)
        return f"torch.{obj.__qualname__}" if is_torchs else f"{home}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    return obj.__name__ if isinstance(obj, FunctionType) else repr(obj)


class NodeOwner(Protocol):
    """What a node asks its graph."""

    @property
    def _root(self) -> Node: ...

    @property
    def owning_module(self) -> Module | None: ...

    def new_name(self, candidate: str) -> str: ...


class Node:
    """A step of a graph.

    `op` is placeholder, get_attr, call_function, call_method, call_module or output. `target` is
    what is called or read, `args` and `kwargs` may hold other nodes, `users` are the nodes that
    read this one, `meta` is anybody's.
    """

    name: str

    graph: NodeOwner

    _args: tuple[Any, ...]
    _kwargs: dict[str, Any]

    def __init__(
        self,
        graph: NodeOwner,
        name: str,
        op: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: object = None,
    ):
        if op not in OPS:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type"
                f" {_type_repr(type(target))} but a Callable is expected"
            )
        if op not in ("call_function", "root") and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type"
                f" {_type_repr(type(target))} but a str is expected"
            )
        self.graph, self.name, self.op = graph, name, op
        self.target: Target = target
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self.type = return_type
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self._set(args, kwargs)

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move `x` to the place before this node."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x: Node) -> None:
        """Move `x` to the place after this node."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def _comes_before(self, other: Node) -> bool:
        node = self._next
        while node is not self.graph._root:
            if node is other:
                return True
            node = node._next
        return False

    def __lt__(self, other: Node) -> bool:
        return self is not other and self._comes_before(other)

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return other <= self

    @property
    def args(self) -> tuple[Any, ...]:
        """Positional arguments; assign others, what lies in them does not change."""
        return self._args

    @args.setter
    def args(self, a: tuple[Any, ...]) -> None:
        self._set(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """Arguments by keyword."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Any]) -> None:
        self._set(self._args, k)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes in the arguments, each once."""
        return list(self._input_nodes)

    def _set(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def seen(node: Node) -> Node:
            self._input_nodes[node] = None
            node.users[self] = None
            return node

        self._args, self._kwargs = map_arg(tuple(args), seen), map_arg(dict(kwargs), seen)

    def update_arg(self, idx: int, arg: object) -> None:
        """Replace one positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: object) -> None:
        """Put a positional argument before another."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: object) -> None:
        """Replace one argument by keyword."""
        self.kwargs = {**self.kwargs, key: arg}

    @property
    def stack_trace(self) -> str | None:
        """Where the traced program made this node, where the tracer records that."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn is not None else self.name

    def _pretty_print_target(self, target: Any) -> str:
        if isinstance(target, str):
            return target
        if getattr(target, "__module__", None) == "builtins":
            return f"builtins.{target.__name__}"
        try:
            return _get_qualified_name(target)
        except (AttributeError, RuntimeError):
            return str(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        **_: object,
    ) -> str | None:
        """One line about this node, as str(graph) has it."""
        users = f"[num_users={len(self.users)}]"
        kind = f" : {_type_repr(self.type)} " if self.type else " : "
        target_text = self._pretty_print_target(self.target)
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(str(self.target))
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name}{kind}{users} = placeholder[target={target_text}]{default}"
        if self.op == "get_attr":
            return f"%{self.name}{kind}{users} = get_attr[target={target_text}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        args, kwargs = _format_arg(self.args), _format_arg(self.kwargs)
        return (
            f"%{self.name}{kind}{users} = {self.op}[target={target_text}](args = {args},"
            f" kwargs = {kwargs})"
        )

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let the users read another node; the nodes that were changed."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [u for u in self.users if delete_user_cb is None or delete_user_cb(u)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Read `new_input` where this node read `old_input`."""

        def swap(node: Node) -> Node:
            return new_input if node is old_input else node

        self._set(map_arg(self.args, swap), map_arg(self.kwargs, swap))

    def normalized_arguments(
        self, root: Module, arg_types: object = None, kwarg_types: object = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:  # fmt: skip
        """The arguments of a function or module with defaults; None where they are not known."""
        from .operator_schemas import normalize_function, normalize_module

        named, target = normalize_to_only_use_kwargs, cast(Any, self.target)
        if self.op == "call_function":
            return normalize_function(
                target, self.args, self.kwargs, normalize_to_only_use_kwargs=named
            )
        if self.op == "call_module":
            return normalize_module(root, target, self.args, self.kwargs, named)
        return None

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node must stay though no other reads it."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return _changes_something(self.target, impure_random)
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            module = owner.get_submodule(str(self.target))
            return bool(getattr(module, "_is_impure", False))
        return False

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph.new_name(candidate)
