"""Owns graphs of ATen operators: a traced call is an overload of torch.ops.aten with its arguments.

What torch makes of other functions in Python is followed into them, as torch does.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn, cast

from .._dispatch.overrides import _as_composite, alone
from .._tensor.device import device as Device
from .._tensor.geometry import Size
from .._tensor.tensor import Tensor
from ..library.symbols import GuardOnDataDependentSymNode
from ..ops.namespaces import OpOverload, namespace
from ..ops.spec import Op
from .aten_calls import aten_call_of_function, aten_call_of_row, body_of
from .call_sites import source_line
from .casts import call_of_cast, cast_of, moved
from .fake import OF_UNKNOWN_SIZE, default_mode, outside
from .graph import Graph
from .node import Node, Target
from .passes.shape_prop import _extract_tensor_metadata
from .recorder import (
    READING,
    Arguments,
    Function,
    GraphRecorder,
    Keywords,
    TracedTensor,
)  # fmt: skip


class TracedNumber:
    """A number that a node gives."""

    make: Callable[[], Node]

    def at(self, version: int) -> float:
        """What it is in a version of the trace."""
        raise NotImplementedError


class TracedInt(TracedNumber, int):
    """A size that may change: one number for each version, and the node that computes it."""

    values: tuple[int, ...]

    def at(self, version: int) -> int:
        return self.values[version]

    def __index__(self) -> int:
        return self

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return int, (int(self),)


def traced_int(values: Sequence[int], make: Callable[[], Node]) -> int:
    """A size with these values; a plain one where it does not change."""
    if len(set(values)) == 1:
        return int(values[0])
    size = TracedInt(values[0])
    size.values, size.make = tuple(values), make
    return size


def _derived(
    sides: Sequence[object], values: Sequence[int], make: Callable[[], Node]
) -> int:  # fmt: skip
    """What is computed of sizes, of which some may be of another class."""
    of_class = next((s._derived for s in sides if hasattr(s, "_derived")), traced_int)
    result: int = of_class(values, make)
    return result


def _arithmetic(name: str, reflected: bool) -> Callable[[TracedInt, object], object]:
    function = getattr(operator, name)

    def compute(self: TracedInt, other: object) -> object:
        plain = getattr(int, f"__{'r' * reflected}{name}__")
        if not isinstance(other, int) or isinstance(other, bool):
            return plain(int(self), other)
        if name == "mul" and type(other) is int and other == 1:
            return self
        others = getattr(other, "values", (other,) * len(self.values))
        pairs = [(b, a) if reflected else (a, b) for a, b in zip(self.values, others, strict=True)]

        def make() -> Node:
            graph = self.make().graph
            sides = [v.make() if isinstance(v, TracedInt) else v for v in (self, other)]
            node = cast(Graph, graph).call_function(
                function, tuple(sides[::-1] if reflected else sides)
            )
            node.meta.update({"ints": values, "from": source_line()})
            return node

        values = [function(a, b) for a, b in pairs]
        return _derived((self, other), values, _once(make))

    return compute


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    for _reflected in (False, True):
        setattr(TracedInt, f"__{'r' * _reflected}{_name}__", _arithmetic(_name, _reflected))


# Comparisons of sizes that a program branched on while they were traced: the sides, the sign and
# the outcome; None where nobody asks.
SizeGuard = tuple[tuple[int, ...], str, tuple[int, ...], bool]
SIZE_GUARDS: ContextVar[list[SizeGuard] | None] = ContextVar("SIZE_GUARDS", default=None)


class TracedBool(int):
    """A comparison of a size that may change: what it is now, and the node that computes it."""

    make: Callable[[], Node]
    guard: tuple[tuple[int, ...], str, tuple[int, ...]]  # the sides in each version, and the sign

    def __repr__(self) -> str:
        return str(self != 0)

    def assume(self) -> None:
        """torch._check of it: a guard."""
        if not self:
            raise RuntimeError("Expected cond to be True, but got False.")

    def __bool__(self) -> bool:
        if (guards := SIZE_GUARDS.get()) is not None:
            guards.append((*self.guard, self != 0))
        return self != 0


def _comparison(name: str, sign: str) -> Callable[[TracedInt, object], object]:
    function = getattr(operator, name)

    def compare(self: TracedInt, other: object) -> object:
        if not isinstance(other, int):
            return getattr(int, f"__{name}__")(self, other)
        result = TracedBool(function(int(self), int(other)))

        def make() -> Node:
            left = self.make()
            right = other.make() if isinstance(other, TracedInt) else other
            node = cast(Graph, left.graph).call_function(function, (left, right))
            others = getattr(other, "values", (int(other),))
            node.meta.update({"compared": (self.values, sign, others), "from": source_line()})
            return node

        result.make = _once(make)
        result.guard = self.values, sign, getattr(other, "values", (int(other),) * len(self.values))
        return result

    return compare


for _name, _sign in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
    setattr(TracedInt, f"__{_name}__", _comparison(_name, _sign))


def _once(make: Callable[[], Node]) -> Callable[[], Node]:
    nodes: list[Node] = []

    def first() -> Node:
        if not nodes:
            nodes.append(make())
        return nodes[0]

    return first


class AtenRecorder(GraphRecorder):
    """Traces to ATen operators; tensors that no call made become `constant` placeholders."""

    lifting: tuple[str, ...] = ("lift_fresh_copy", "detach_")  # of numbers in the program

    def __init__(self, versions: int = 1) -> None:
        super().__init__()
        self.versions = versions
        self.constants: dict[str, Tensor] = {}
        self.constant_names: dict[int, str] = {}
        self.size_nodes: dict[tuple[int, int], Callable[[], Node]] = {}
        self.first_input: Node | None = None

    inside = alone

    def row(self, op: Op, form: str, raw: Sequence[Any]) -> Any:
        if op.name == "contiguous" and raw[1] is None and self.metas_of(raw[0])[0].is_contiguous():
            return raw[0]
        call, run, args, kwargs = aten_call_of_row(op, form, raw)
        if call is None and (body := body_of(op)) is not None:
            with self.inside():
                return body(*raw)
        if call is None:
            end = "_" if form in ("inplace", "augmented") else ""
            call = getattr(namespace("aten"), op.base_name + end).default, *_as_composite(op, raw)
        return self.operator(call, run, args, kwargs)

    def operator(
        self, call: tuple[OpOverload, Arguments, Keywords], run: Function, args: Arguments,
        kwargs: Keywords,
    ) -> Any:  # fmt: skip
        """Add the node of an operator's call, which `run` computes on meta tensors."""
        target, node_args, node_kwargs = call
        spelling = "call_function", target, node_args, node_kwargs
        return self.call(None, "", run, args, kwargs, spelling)

    def function(self, func: Function, args: Arguments, kwargs: Keywords) -> object:
        name = func.__name__
        if name in READING or name in OF_UNKNOWN_SIZE:
            self.break_graph(func)
        if name == "tensor":
            with outside():
                return self.lift_fresh(func(*args, **kwargs))
        if (cast := cast_of(name, args, kwargs)) is not None:
            self._note_metadata(args[0])
            named = {} if cast.device is None else {"device": cast.device}
            keeps = cast.keeps(args[0])
            return self.operator(call_of_cast(args[0], cast), moved, (args[0], cast, keeps), named)
        call = aten_call_of_function(func, args, kwargs)
        if call is not None:
            return self.operator(call, func, args, kwargs)
        with self.inside():
            return inspect.unwrap(func)(*args, **kwargs)

    def _note_metadata(self, tensor: Tensor) -> None:
        """torch notes before a cast what it assumes of the tensor."""
        from .._functional.queries import strided

        self.graph.create_node(
            "call_function", namespace("aten")._assert_tensor_metadata.default,
            (self.node_of(tensor),),
            {"dtype": tensor.dtype, "device": tensor._geom.device, "layout": strided},
            "_assert_tensor_metadata_default",
        )  # fmt: skip

    def lift_fresh(self, tensor: Tensor) -> TracedTensor:
        """A tensor of numbers in the program: a constant that each run copies."""
        node = self.node_of(tensor)
        for name in self.lifting:
            target = getattr(namespace("aten"), name).default
            node = self.add_node("call_function", target, (node,), {})
            node.meta["metas"] = self.metas_of(tensor)
        return self.traced(self.metas_of(tensor), node, tensor._geom.device)

    def lift(self, tensor: Tensor) -> Node:
        name = self.constant_names.get(id(tensor))
        if name is None:
            name = f"lifted_tensor_{sum(n.startswith('lifted_tensor') for n in self.constants)}"
        self.constants[name] = tensor
        place = self.graph.inserting_before(self.first_input)
        with place:
            node = self.graph.placeholder(f"c_{name.replace('.', '_')}")
        node.meta["metas"] = metas = self.metas_of(tensor)
        node.meta["val"] = default_mode().stand_in(metas[0], tensor._geom.device)
        node.meta["tensor_meta"] = _extract_tensor_metadata(metas[0])
        return node

    def add_node(self, kind: str, target: Target, args: Arguments, kwargs: Keywords) -> Node:
        name = None
        if isinstance(target, OpOverload):
            name = self.graph._target_to_str(target.overloadpacket.__name__)
        node = self.graph.create_node(kind, target, args, kwargs, name)
        if self.notes_lines:
            node.meta["from"] = source_line()
        if self.nested is not None and self.notes_lines:  # a line of its own in torch
            node.meta["operator"] = node.name
        return node

    def traced(self, metas: tuple[Tensor, ...], node: Node, device: Device) -> TracedTensor:
        node.meta["metas"] = metas
        node.meta["tensor_meta"] = _extract_tensor_metadata(metas[0])
        return super().traced(metas, node, device)

    def written(self, tensor: Tensor, node: Node) -> None:
        node.meta["metas"] = metas = self.metas_of(tensor)
        node.meta["tensor_meta"] = _extract_tensor_metadata(metas[0])
        super().written(tensor, node)

    def argument(self, value: object) -> object:
        return value.make() if isinstance(value, TracedNumber) else super().argument(value)

    def value_of(self, value: object, version: int) -> object:
        return value.at(version) if isinstance(value, TracedNumber) else value

    def plain(self, results: Sequence[object]) -> object:
        return results[0]

    def sizes(self, tensor: TracedTensor) -> Size:
        shapes = [meta.shape for meta in tensor._metas]
        if len(set(shapes)) == 1:
            return shapes[0]
        columns = zip(*shapes, strict=True)
        sizes = [traced_int(c, self._size_node(tensor, dim, c)) for dim, c in enumerate(columns)]
        return tuple.__new__(Size, sizes)

    def _size_node(
        self, tensor: TracedTensor, dim: int, values: Sequence[int]
    ) -> Callable[[], Node]:
        key = id(tensor._node), dim
        if key not in self.size_nodes:
            node = tensor._node

            def make() -> Node:
                target = namespace("aten").sym_size.int
                count = sum(n.name.startswith("sym_size_int") for n in self.graph.nodes)
                last = node
                if node.op == "placeholder":
                    last = [n for n in self.graph.nodes if n.op == "placeholder"][-1]
                with self.graph.inserting_after(last):
                    name = f"sym_size_int_{count + 1}"
                    size = self.graph.create_node("call_function", target, (node, dim), {}, name)
                size.meta["ints"] = values
                return size

            self.size_nodes[key] = _once(make)
        return self.size_nodes[key]

    def on_meta(
        self, name: str, func: Function, args: Arguments, kwargs: Keywords, version: int
    ) -> Any:
        try:
            return super().on_meta(name, func, args, kwargs, version)
        except (IndexError, RuntimeError) as error:
            if version:
                raise self.size_error(version) from error
            raise

    def size_error(self, version: int) -> Exception:
        """What to raise for a call that does not work with another size."""
        return RuntimeError(f"size {version} is fixed by the program")

    def break_graph(self, func: Function | str) -> NoReturn:
        name = func if isinstance(func, str) else func.__name__
        what = f": Tensor.{name} of a traced tensor."
        if name == "__bool__":
            what = " Eq(u0, 1) (unhinted: Eq(u0, 1)).  (Size-like symbols: none)"
        raise GuardOnDataDependentSymNode(
            f"Could not guard on data-dependent expression{what}\n\n"
            "consider using data-dependent friendly APIs such as guard_or_false, guard_or_true and"
            " statically_known_true."
        )
