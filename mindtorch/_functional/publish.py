"""Owns the surface derived from rows: `torch.name`, `Tensor.name`, `Tensor.name_` and operators.

Everything is made on first use: a lazy attribute stands in until then, because compiling some
hundreds of entries at import would cost more than the import may take.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import isfunction
from typing import Any, TypeVar

from .._compat.absent_modules import refused_operator
from .._compat.argument_errors import parsed
from .._dispatch.builtins import LAYERS as IN_C, METHODS, NN, method, public
from .._dispatch.overloads import entry_of
from .._dispatch.overrides import PUBLISHED, asking_by_name, seen_by_modes
from .._tensor.slots import TensorSlots
from .._tensor.subclass import DOOR
from .._tensor.tensor import Tensor
from ..ops.namespaces import REFUSING
from ..ops.spec import OPS, SPACES, Op, aten

F = TypeVar("F", bound=Callable[..., Any])
FUNCTIONS: dict[str, Any] = {}
LAYERS: dict[str, Op] = {}
MODULES: dict[str, dict[str, Op]] = {space: {} for space in SPACES}

# operator -> (op, form); reflected operators of commutative ops share theirs.
OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "matmul": "matmul", "pow": "pow",
    "mod": "remainder", "floordiv": "floor_divide", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
    "rsub": "rsub", "rtruediv": "__rtruediv__", "rfloordiv": "__rfloordiv__",
    "rdiv": "__rtruediv__", "rmatmul": "__rmatmul__",
    "rmod": "__rmod__", "rpow": "__rpow__", "rlshift": "__rlshift__", "rrshift": "__rrshift__",
    "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
}  # fmt: skip
COMMUTATIVE = frozenset(("add", "mul", "and", "or", "xor"))
NOT_INPLACE = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "matmul"))
# Functions that torch's modes do not see, for they take no tensors.
_UNSEEN = re.compile("(set|get|are|use|init|is_deterministic)_.*|from_(file|numpy)|frombuffer"
                     "|is_(tensor|storage)|typename|broadcast_shapes|range")  # fmt: skip
UNARY = {"pos": "positive", "neg": "neg", "abs": "abs"}


class LazyMethod:
    """A Tensor attribute that becomes the entry when first read."""

    __slots__ = ("form", "name", "op")

    def __init__(self, name: str, op: Op, form: str):
        self.name = name
        self.op = op
        self.form = form

    def __get__(self, instance: Tensor | None, owner: type | None = None) -> Callable[..., Any]:
        plain = self.name.startswith("__")
        entry = self.op.entry(self.form) if plain else entry_of(self.op, self.form, self.name)
        entry = method(entry, self.name)
        setattr(Tensor, self.name, entry)
        return entry if instance is None else entry.__get__(instance, owner)


def _put(name: str, member: LazyMethod) -> None:
    """Where Python finds a method, and where pickles look for it."""
    setattr(Tensor, name, member)
    setattr(TensorSlots, name, member)


def publish(op: Op) -> None:
    """Put an op's function, method, in-place method and operators where torch has them."""
    places, name = op.places, op.base_name
    if "function" in places:
        FUNCTIONS.setdefault(name, op)
    if "method" in places and name not in Tensor.__dict__:
        _put(name, LazyMethod(name, op, "method"))
    if op.writes.inplace and name + "_" not in Tensor.__dict__:
        _put(name + "_", LazyMethod(name + "_", op, "inplace"))
    for space in places.intersection(SPACES):
        MODULES[space].setdefault(name.removeprefix(space + "_"), op)
    for end in ("", "_"):
        if "nn" + end in places:
            LAYERS[name + end] = op


def publish_all() -> None:
    """Publish every row, then the operators."""
    for op in OPS.values():
        publish(op)
    for symbol, name in OPERATORS.items():
        if name in OPS:
            _publish_operator(symbol, OPS[name])
    for symbol, name in UNARY.items():
        if name in OPS:
            setattr(Tensor, f"__{symbol}__", LazyMethod(f"__{symbol}__", OPS[name], "method"))
    attach("__invert__", _invert)
    attach("backward", asking_by_name(getattr(Tensor, "backward")))  # noqa: B009
    REFUSING.append(refused_operator)
    shut()


def _invert(self: Tensor) -> Tensor:
    """`~x`: TypeError where `bitwise_not` has another class of error."""
    if self.is_floating_point() or self.is_complex():
        raise TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
        )
    return aten.bitwise_not(self)


def _publish_operator(symbol: str, op: Op) -> None:
    names = [f"__{symbol}__"]
    if symbol in COMMUTATIVE:
        names.append(f"__r{symbol}__")
    for name in names:
        setattr(Tensor, name, LazyMethod(name, op, "operator"))
    if symbol not in NOT_INPLACE and op.writes.inplace:
        name = f"__i{symbol}__"
        setattr(Tensor, name, LazyMethod(name, op, "augmented"))


DOOR["published"] = FUNCTIONS.get


def function(name: str) -> Callable[..., Any]:
    """`torch.name`: a row's function, or one written by hand; AttributeError for neither."""
    published = FUNCTIONS.get(name)
    if published is None:
        raise AttributeError(f"module 'mindtorch' has no attribute '{name}'")
    if published.__class__ is Op:
        published = FUNCTIONS[name] = entry_of(published, "function", name)
    return public(published, name, second=name in LAYERS and name not in IN_C | METHODS)


def of_op(op: Op) -> Callable[..., Any]:
    """What users call by an op's base name: torch may have another in nn.functional."""
    name = op.base_name
    if "nn" in op.places:
        return layer(name)
    if "function" in op.places:
        return function(name)
    space = next((s for s in SPACES if s in op.places), None)
    return module(space)[1](name.removeprefix(f"{space}_")) if space else layer(name + "_")


PUBLISHED["function"] = of_op


def spelled(row: str, name: str) -> Callable[..., Any]:
    """A row's function under another name, which its errors tell."""
    op = OPS.get(row)
    entry = FUNCTIONS[row] if op is None else entry_of(op, "function", name)
    return public(entry, name, name.partition("_")[0])


def layer(name: str) -> Callable[..., Any]:
    """`torch.nn.functional.name`; AttributeError where no row says so."""
    if name not in LAYERS:
        raise AttributeError(f"module 'mindtorch.nn.functional' has no attribute '{name}'")
    layer = LAYERS[name].entry("function")
    if name.endswith("_"):
        layer = writing(layer, name)
    if name in _DISPATCHED:
        layer.__qualname__ = f"_{name}"
    if name in IN_C:
        return public(layer, name.replace("logs", "log_s"), "nn" * (name in NN))
    layer.__module__ = "torch.nn.functional"
    return layer


# What torch dispatches by a flag to a function whose name begins with `_`: errors tell that.
_DISPATCHED = frozenset(
    ["threshold"]
    + [f"{kind}max_pool{n}d" for kind in ("", "adaptive_", "fractional_") for n in (1, 2, 3)]
)


def module(space: str) -> tuple[list[str], Callable[[str], Any]]:
    """The names of `torch.<space>`, and the function that finds one: rows called space_name."""
    rows = MODULES[space]

    def find(name: str) -> Any:
        if name not in rows:
            raise AttributeError(f"module 'mindtorch.{space}' has no attribute '{name}'")
        return public(entry_of(rows[name], "function", f"{space}_{name}"), f"{space}_{name}", space)

    return sorted(rows), find


def writing(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """`name`: a layer's function that writes its result to its input."""

    def write(input: Tensor, *args: Any, **options: Any) -> Any:
        return function(input, *args, inplace=True, **options)

    write.__doc__ = f"{name.removesuffix('_')}, in place."
    return parsed(name)(write)


def attach(name: str, member: Any) -> None:
    """Give Tensor an attribute that rows cannot say: a property, an overload."""
    setattr(Tensor, name, method(member, name))


def shut() -> None:
    """Have Tensor's members be of torch's kinds; those that are only read say so as torch does."""

    def refuse(name: str) -> Callable[..., None]:
        def write(self: Tensor, *_: object) -> None:
            raise AttributeError(
                f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable"
            )

        return write

    for name, member in list(Tensor.__dict__.items()):
        if isfunction(member):
            setattr(Tensor, name, method(member, name))
        if isinstance(member, property):
            if name in ("data", "requires_grad"):
                continue
            writes, deletes = member.fset or refuse(name), member.fdel or refuse(name)
            setattr(Tensor, name, property(member.fget, writes, deletes, member.__doc__))


def surface(
    *, name: str | None = None, function: bool = True, method: bool = True, internal: bool = True
) -> Callable[[F], F]:
    """Publish a hand-written function: `torch.name`, `Tensor.name` and `aten.name`."""

    def put(fn: F) -> F:
        spelling = name or fn.__name__
        if function:
            seen = isfunction(fn) and not _UNSEEN.fullmatch(spelling)
            FUNCTIONS[spelling] = seen_by_modes(fn) if seen else fn
        if method:
            setattr(Tensor, spelling, getattr(fn, "as_method", fn))
        if internal:
            aten.publish(spelling, fn)
        return fn

    return put
