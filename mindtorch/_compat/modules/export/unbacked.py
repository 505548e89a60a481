"""Owns numbers that an exported program reads from its tensors: nobody knows them before it runs.

As sizes that may change, an integer has a value in each version of the trace: that of the example,
and a neighbour in a version of its own. A program may compute with it, and say what holds of it
(`torch._check`); where it branches on it, it is refused.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from mindtorch._dispatch.new_sizes import new_sizes, with_sizes
from mindtorch._tensor.device import device as Device
from mindtorch._tensor.subclass import OURS
from mindtorch._tensor.tensor import Tensor
from mindtorch.autograd import no_grad
from mindtorch.fx.aten import AtenRecorder, TracedInt, TracedNumber
from mindtorch.fx.fake import meta_like, outside
from mindtorch.fx.node import Node, Target, map_arg
from mindtorch.fx.recorder import Arguments, Keywords
from mindtorch.library.symbols import GuardOnDataDependentSymNode, unguarded
from mindtorch.ops.aten_overloads import Call
from mindtorch.ops.namespaces import namespace
from mindtorch.utils._pytree import tree_leaves, tree_map

from .sizes import DynamicSizes, Symbol, ValueRanges, within

_ATEN = namespace("aten")
_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


# Operators of one result that is as long as values say.
OF_VALUES = frozenset(("bincount", "masked_select", "nonzero"))


class OneMore(Exception):
    """A program reads another integer, which is `value` in the example."""

    def __init__(self, value: int):
        super().__init__(value)
        self.value = value


def _same(node: Node) -> Node:
    return node


def refuse(text: str) -> NoReturn:
    """GuardOnDataDependentSymNode for a program that asks what an expression is."""
    raise GuardOnDataDependentSymNode(unguarded(text))


def refuse_number(text: str) -> NoReturn:
    """The same for one that wants a plain integer."""
    raise GuardOnDataDependentSymNode(
        f"Could not extract specialized integer from data-dependent expression {text} (unhinted:"
        f" {text}).  (Size-like symbols: none)\n\n"
    )


def _asked_by_program() -> bool:
    return not sys._getframe(2).f_code.co_filename.startswith(OURS)


class UnknownInt(TracedInt):
    """An integer that is read from a tensor, or computed of one."""

    numbers: UnknownNumbers

    def _derived(self, values: Sequence[int], make: Callable[[], Node]) -> UnknownInt:
        result = UnknownInt(values[0])
        result.values, result.make, result.numbers = tuple(values), make, self.numbers
        return result

    def __int__(self) -> int:
        if _asked_by_program():
            refuse_number(self.numbers.sizes.text(self.values))
        return int.__int__(self)

    def __bool__(self) -> bool:
        if _asked_by_program():
            refuse(f"Ne({self.numbers.sizes.text(self.values)}, 0)")
        return int.__bool__(self)

    __hash__ = int.__hash__


class UnknownBool(int):
    """A comparison of an unknown integer; ours may ask what it is in the example."""

    left: UnknownInt
    sign: str
    right: int

    def make(self) -> Node:
        """The node that compares."""
        return self.left.numbers.compare(self.left, self.sign, self.right)

    def assume(self) -> None:
        """From now on it holds; programs fail where it does not."""
        self.left.numbers.assume(self)

    def __bool__(self) -> bool:
        if _asked_by_program():
            refuse(self.left.numbers.text(self.left, self.sign, self.right))
        return int(self) != 0


def _comparison(name: str, sign: str) -> Callable[[UnknownInt, object], object]:
    def compare(self: UnknownInt, other: object) -> object:
        if not isinstance(other, int):
            return getattr(int, f"__{name}__")(self, other)
        if _asked_by_program():
            self.numbers.reserve(name)
        return _compared(self, sign, other)

    return compare


for _sign, _function in _FUNCTIONS.items():
    setattr(UnknownInt, f"__{_function.__name__}__", _comparison(_function.__name__, _sign))


class TracedFloat(TracedNumber, float):
    """A float that is read from a tensor, or computed of one; its value is not known."""

    text: str

    def at(self, version: int) -> float:
        return 1.0

    def _refuse(self) -> NoReturn:
        refuse(f"Ne({self.text}, 0)")

    __bool__ = __int__ = __trunc__ = _refuse

    def __float__(self) -> float:
        return self


def _float_arithmetic(name: str, sign: str, reflected: bool) -> Callable[..., object]:
    function = getattr(operator, name)

    def compute(self: TracedFloat, other: object) -> object:
        if not isinstance(other, int | float):
            return NotImplemented
        other = other if hasattr(other, "make") else float(other)
        sides = (other, self) if reflected else (self, other)
        left, right = (getattr(s, "text", str(s)) for s in sides)
        graph: Any = self.make().graph
        nodes = tuple(s.make() if isinstance(s, TracedNumber) else s for s in sides)
        text = f"{left} {sign} {right}"
        if sign == "*":  # torch's symbols stand behind numbers
            text = f"{left}*{right}" if reflected else f"{right}*{left}"
        return traced_float(graph.call_function(function, nodes), text)

    return compute


def _float_comparison(sign: str) -> Callable[[TracedFloat, object], NoReturn]:
    def compare(self: TracedFloat, other: object) -> NoReturn:
        bound = getattr(other, "text", float(other) if isinstance(other, int) else other)
        refuse(f"{self.text} {sign} {bound}")

    return compare


for _name, _text in (("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/")):
    for _reflected in (False, True):
        _method = _float_arithmetic(_name, _text, _reflected)
        setattr(TracedFloat, f"__{'r' * _reflected}{_name}__", _method)
for _sign in ("<", "<=", ">", ">="):
    setattr(TracedFloat, f"__{_FUNCTIONS[_sign].__name__}__", _float_comparison(_sign))


def traced_float(node: Node, text: str) -> TracedFloat:
    """The number that a node gives."""
    node.meta["number"] = text
    number = TracedFloat(1.0)
    number.make, number.text = lambda: node, text
    return number


class UnknownNumbers:
    """The numbers that one trace has read, and what the program says of them.

    `known` are the integers' values in the versions: in the example, and in their own.
    """

    def __init__(self, recorder: AtenRecorder, sizes: DynamicSizes, known: Sequence[int]):
        self.recorder, self.sizes, self.known = recorder, sizes, known
        self.reals: dict[Node, Tensor] = {}  # the example's, of placeholders
        self.numbers: dict[Node, object] = {}  # by the nodes of what they are read from
        self.items: list[tuple[Symbol, Node]] = []
        self.rest: list[tuple[Symbol, UnknownBool]] = []

    def read(self, tensor: Tensor) -> object:
        """What `tensor.item()` gives."""
        node = self.recorder.node_of(tensor)
        if node not in self.numbers:
            self.numbers[node] = self._read(tensor, node)
        return self.numbers[node]

    def _read(self, tensor: Tensor, node: Node) -> object:
        dtype = tensor._geom.dtype
        if dtype._name == "bool":
            refuse("Eq(u0, 1)")
        if dtype.is_floating_point:
            item = self._node(_ATEN.item.default, (node,), {})
            symbol = Symbol(f"zuf{len(self.sizes.floats)}")
            self.sizes.floats.append(symbol)
            return traced_float(item, symbol)
        symbol, values = self._next(lambda: int(self._evaluate(node).item()))
        item = self._node(_ATEN.item.default, (node,), {})
        item.meta["ints"] = values
        self.items.append((symbol, item))
        return self._number(item)

    def read_list(self, tensor: Tensor) -> object:
        """What `tensor.tolist()` gives."""
        if not tensor.dim():
            return self.read(tensor)
        return [self.read_list(part) for part in tensor.unbind(0)]

    def read_size(self, call: Call, device: Device) -> Tensor:
        """What an operator gives whose result is as long as its values say."""
        target, args, kwargs = call
        node_args, node_kwargs = tree_map(self.recorder.argument, (tuple(args), kwargs))
        node = self._node(target, tuple(node_args), node_kwargs)
        real = self._evaluate(node)
        symbol, values = self._next(lambda: len(real))
        metas = tuple(meta_like(real, (value, *real.shape[1:])) for value in values)
        result = self.recorder.traced(metas, node, device)
        size = self._size_node(node, 0, values)
        self.recorder.size_nodes[id(node), 0] = lambda: size
        self.items.append((symbol, size))
        counted = args[1][0] if isinstance(args[-1], list) else args[0]
        longest = None if target.overloadpacket.__name__ == "bincount" else counted.numel()
        self.sizes.ranges[symbol] = ValueRanges(0, longest)
        return result

    def read_new_sizes(self, operator: Any, args: Arguments, kwargs: Keywords) -> Any:
        """What an operator of the program gives whose fake asks for sizes."""
        recorder = self.recorder
        node_args, node_kwargs = tree_map(recorder.argument, (tuple(args), kwargs))
        node = self._node(operator, tuple(node_args), node_kwargs)

        def fake(version: int) -> Callable[[], Any]:
            return lambda: recorder.on_meta("", operator, args, kwargs, version)

        real: object = self._evaluate(node)
        sizes = new_sizes(fake(0), real)
        columns, start = list[tuple[int, ...]](), len(self.items)
        for size in sizes:
            symbol, values = self._next(partial(int, size.value))
            columns.append(values)
            self.items.append((symbol, node))  # until there is a node of the size
            self.sizes.ranges[symbol] = ValueRanges(size.least, size.most)
        versions = range(recorder.versions)
        results = [with_sizes(fake(k), [values[k] for values in columns]) for k in versions]
        result = recorder.wrapped(node, results, [tree_leaves(r) for r in results], args, kwargs)
        parts = [part._node for part in tree_leaves(result)]
        with recorder.graph.inserting_before(node.next):
            for at, (size, values) in enumerate(zip(sizes, columns, strict=True), start):
                leaf, dim = size.places[0]
                part = node if isinstance(real, Tensor) else recorder.getitem(node, leaf)
                item = self._size_node(part, dim, values)
                self.items[at] = self.items[at][0], item
                for leaf, dim in size.places:
                    recorder.size_nodes[id(parts[leaf]), dim] = partial(_same, item)
        return result

    def _size_node(self, node: Node, dim: int, values: Sequence[int]) -> Node:
        size = self.recorder.graph.create_node(
            "call_function", _ATEN.sym_size.int, (node, dim), {}, "sym_size_int"
        )
        size.meta["ints"] = values
        return size

    def _node(self, target: Target, args: Arguments, kwargs: Keywords) -> Node:
        """The node of what values decide."""
        node = self.recorder.add_node("call_function", target, args, kwargs)
        node.meta["of_values"] = True
        return node

    def _next(self, value: Callable[[], int]) -> tuple[Symbol, tuple[int, ...]]:
        """The next integer with its values; OneMore where this trace has no version for it."""
        at = len(self.items)
        if at == len(self.known):
            raise OneMore(value())
        symbol = Symbol(f"u{at}")
        values = [self.known[at]] * self.recorder.versions
        values[1 + list(self.sizes.ranges).index(symbol)] = self.sizes.other_value(symbol)
        return symbol, tuple(values)

    def _number(self, item: Node) -> UnknownInt:
        number = UnknownInt(item.meta["ints"][0])
        number.values, number.make, number.numbers = item.meta["ints"], lambda: item, self
        return number

    def _evaluate(self, node: Node) -> Tensor:
        """What a node gives in the example."""
        values: dict[Node, Any] = {}
        with outside(), no_grad():
            for each in self.recorder.graph.nodes:
                if each.op == "placeholder":
                    real = self.reals.get(each)
                    name = str(each.target).removeprefix("c_")
                    real = self.recorder.constants.get(name) if real is None else real
                    values[each] = None if real is None else real.clone()
                elif each.op == "call_function":
                    run: Any = each.target
                    args, kwargs = map_arg((each.args, each.kwargs), values.__getitem__)
                    values[each] = run(*args, **kwargs)
        result: Tensor = values[node]
        return result

    def text(self, left: UnknownInt, sign: str, right: int) -> str:
        """A comparison as torch writes it."""
        one = self.sizes.text(left.values)
        two = self.sizes.text(right.values) if isinstance(right, TracedInt) else str(right)
        names = {"==": "Eq", "!=": "Ne"}
        return f"{names[sign]}({one}, {two})" if sign in names else f"{one} {sign} {two}"

    def reserve(self, name: str) -> None:
        """The node that torch makes of a comparison, and deletes, has had this name."""
        node = self.recorder.graph.create_node("call_function", operator.add, (0, 0), {}, name)
        self.recorder.graph.erase_node(node)

    def compare(self, left: UnknownInt, sign: str, right: int) -> Node:
        """The node of a comparison."""
        side = right.make() if isinstance(right, TracedInt) else right
        node = self.recorder.graph.call_function(_FUNCTIONS[sign], (left.make(), side))
        node.meta["compared"] = left.values, sign, getattr(right, "values", (right,))
        return node

    def size(self, size: int) -> int:
        """A size as the program sees it: an unknown number where values decide it."""
        values = getattr(size, "values", None)
        items = [item for _, item in self.items if item.meta.get("ints") == values]
        return self._number(items[0]) if values is not None and items else size

    def _symbol(self, values: Sequence[int]) -> Symbol | None:
        """The integer that has these values in the versions; None for an expression."""
        return next((s for s, item in self.items if item.meta["ints"] == tuple(values)), None)

    def not_negative(self, values: object) -> None:
        """Sizes are from 0 on."""
        for value in tree_leaves(values):
            symbol = self._symbol(value.values) if isinstance(value, UnknownInt) else None
            if symbol is not None:
                self.sizes.ranges[symbol] = within(self.sizes.ranges[symbol], ">=", 0)

    def assume(self, holds: UnknownBool) -> None:
        """Note what a program says."""
        symbol, sign, right = self._symbol(holds.left.values), holds.sign, holds.right
        number = not isinstance(right, TracedInt)
        if symbol is None:
            self._assert(holds)
            return
        if number and sign in ("<", "<=", ">", ">="):
            self.sizes.ranges[symbol] = within(self.sizes.ranges[symbol], sign, right)
        if not number or sign not in ("<=", ">="):
            self.rest.append((symbol, holds))

    def finish(self) -> None:
        """Put what must hold behind the numbers."""
        graph = self.recorder.graph
        for symbol, item in self.items:
            bounds = self.sizes.ranges[symbol]
            number = self._number(item)
            checks = [(">=", bounds.lower), ("<=", bounds.upper)]
            with graph.inserting_before(item.next):
                for sign, bound in checks:
                    if bound is not None:
                        self._assert(_compared(number, sign, bound), True)
                for owner, holds in self.rest:
                    if owner == symbol:
                        self._assert(holds)

    def _assert(self, holds: UnknownBool, plain: bool = False) -> None:
        node = holds.make()
        left, sign, right = holds.left, holds.sign, holds.right
        expression = self.text(left, sign, right)
        if sign in (">", ">=") and not plain:
            one, two = expression.split(f" {sign} ")
            expression = f"{two} {_REVERSED[sign]} {one}"
        message = f"Runtime assertion failed for expression {expression} on node '{node.name}'"
        check = self.recorder.graph.create_node(
            "call_function", _ATEN._assert_scalar.default, (node, message), {},
            "_assert_scalar_default",
        )  # fmt: skip
        check.meta["of_values"] = True


def _compared(left: UnknownInt, sign: str, right: int) -> UnknownBool:
    result = UnknownBool(_FUNCTIONS[sign](int.__int__(left), int.__int__(right)))
    result.left, result.sign, result.right = left, sign, right
    return result
