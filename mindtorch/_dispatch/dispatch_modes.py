"""Owns `__torch_dispatch__` modes: they see each row's call below autograd, once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, TypeVar

from .._autograd.grad_mode import LOCAL, MODES
from .._autograd.scope import StepScope
from .._tensor.device import device as Device, resolve
from .._tensor.dtype import dtype as Dtype
from .._tensor.subclass import DOOR, LOCAL as SUBCLASS
from .._tensor.tensor import Tensor
from ..ops.aten_overloads import Call, call_of_function, call_of_row
from ..ops.function_schema import Argument
from ..ops.namespaces import OpOverload, namespace, written_by
from ..ops.rules import NUMBERS
from ..ops.spec import OPS, Op, aten
from .bind import normalise
from .keys import DispatchKey

T = TypeVar("T")
# Rows in Python that are one operator in torch.
WHOLE_ROWS = frozenset((
    "addr", "allclose", "aminmax", "argmax", "argmin", "block_diag", "bucketize", "celu",
    "clamp_max", "clamp_min", "diag_embed", "diagonal_copy", "dist", "equal", "glu", "hardsigmoid",
    "histc", "multi_margin_loss", "pixel_shuffle", "pixel_unshuffle", "renorm", "rot90", "rsub",
    "searchsorted", "take", "threshold", "trace", "vdot",
))  # fmt: skip
# Rows that torch makes of other operators before it asks a mode or a class.
COMPOSITES: dict[str, Callable[..., Any]] = {}
_AUTOGRAD = int(DispatchKey.Autograd)


class TorchDispatchMode(StepScope):
    """A context whose `__torch_dispatch__` sees every operator that runs inside.

    Inside that method the mode is off and nothing is recorded for gradients.
    """

    of_classes = False  # whether it asks the classes of tensors

    def __init__(self, _dispatch_key: object = None) -> None:
        pass

    def __torch_dispatch__(
        self, func: object, types: object, args: object = (), kwargs: object = None
    ) -> Any:
        raise NotImplementedError

    def steps(self) -> Iterator[TorchDispatchMode]:
        before = LOCAL.dispatches
        try:
            MODES.active += 1
            LOCAL.dispatches = (*before, self)
            yield self
        finally:
            LOCAL.dispatches = before
            MODES.active -= 1

    @classmethod
    def push(cls, *args: object, **kwargs: object) -> object:
        """An instance, to be entered."""
        return cls(*args, **kwargs)  # whatever the class takes

    @classmethod
    def is_infra_mode(cls) -> bool:
        """False: a mode of the program's own."""
        return False


class Watched:
    """A plan whose run goes to the innermost mode."""

    def __init__(self, op: Op, plan: Any):
        self._op, self._plan = op, plan

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plan, name)

    def run(self, *args: Any) -> Any:
        """Ask the mode; without one, run the plan."""
        excluded, LOCAL.exclude = LOCAL.exclude, LOCAL.exclude | _AUTOGRAD
        try:
            result = in_parts(self._op, args)
        finally:
            LOCAL.exclude = excluded
        if result is NotImplemented:
            result = ask_operator(*operator_call(self._op, "", args))
        return tuple(result) if result.__class__ is list else result  # as rows have several


class WatchedInplace(Watched):
    """The same of a call that writes to its first argument."""

    def run(self, outs: Any, *args: Any) -> Any:
        """Ask the mode for the writing form."""
        return ask_operator(*operator_call(self._op, "_", args))


def unseen(function: Callable[..., T], *args: Any) -> T:
    """A call that no mode sees, as torch makes none there; classes compute what they hold."""
    modes = LOCAL.dispatches
    LOCAL.dispatches = tuple(m for m in modes if m.of_classes)
    try:
        return function(*args)
    finally:
        LOCAL.dispatches = modes


def _watched() -> bool:
    """Whether a mode sees operators."""
    return bool(MODES.active and LOCAL.dispatches)


aten.publish("_watched", _watched)
aten.publish("_recording", lambda: LOCAL.grad)  # in a derivative: whether it has one itself
aten.publish("_unseen", unseen)


# Functions by hand that are one operator each in torch, those without a tensor first.
_FACTORIES = frozenset((
    "arange", "empty", "eye", "full", "linspace", "logspace", "ones", "rand", "randint", "randn",
    "randperm", "zeros",
))  # fmt: skip
_LIKE = frozenset((
    "empty_like", "full_like", "new_empty", "new_full", "new_ones", "new_zeros", "ones_like",
    "rand_like", "randint_like", "randn_like", "zeros_like",
))  # fmt: skip


# Draws that are functions of their tensors.
_DRAWS = frozenset(("bernoulli", "multinomial", "normal", "poisson"))


def fills_by_mode(
    self: Tensor, name: str, numbers: Sequence[Any], defaults: Sequence[Any], generator: object
) -> bool:
    """Whether a mode was asked to fill `self` by the operator `name`; defaults are left out."""
    if not _watched():
        return False
    while numbers and numbers[-1:] == defaults[len(numbers) - 1 : len(numbers)]:
        numbers = numbers[:-1]
    named = {} if generator is None else {"generator": generator}
    ask(name, (self, *numbers), named)
    return True


def ask(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the innermost mode makes of an operator, `add.Tensor`."""
    packet, _, overload = name.partition(".")
    return ask_operator(
        getattr(getattr(namespace("aten"), packet), overload or "default"), args, kwargs
    )


aten.publish("_asked", ask)


def ask_in_place(op: Op, raw: Sequence[Any]) -> Any:
    """What the innermost mode makes of a view in place."""
    given = [*raw, *(a.default for a in op.schema.args[len(raw) :])]
    return ask_operator(*operator_call(op, "_", normalise(op, given)))


aten.publish("_asked_in_place", ask_in_place)


# Overloads that write into tensors of their callers, where no rule gives their names.
_INTO = {
    "any.default": "all_out", "any.dim": "out", "all.default": "all_out", "all.dim": "out",
    "div.Tensor_mode": "out_mode", "linalg_eigh.default": "eigvals", "linalg_svd.default": "U",
    "max.default": "unary_out", "max.dim": "dim_max", "max.other": "out",
    "median.dim": "dim_values", "min.default": "unary_out", "min.dim": "dim_min",
    "min.other": "out", "nanmedian.dim": "dim_values", "prod.dim_int": "int_out",
    "sort.default": "values", "sort.stable": "values_stable", "sum.dim_IntList": "IntList_out",
}  # fmt: skip


def writing_overload(function: OpOverload) -> OpOverload | None:
    """The overload with `out=` of an operator; None for one that has none."""
    packet, name = function.overloadpacket, function._overloadname
    known = _INTO.get(f"{packet.__name__}.{name}")
    candidates = (known, "out" if name == "default" else f"{name}_out", "out", "values")
    overload = next((c for c in candidates if c in packet.overloads()), None)
    return None if overload is None else getattr(packet, overload)


def ask_into(op: Op, out: Any, raw: Sequence[Any]) -> Any:
    """What the innermost mode makes of a row's call with `out=`; NotImplemented for a row that
    torch makes of other operators."""
    if op.base_name == "matmul" and raw[0].dim() == raw[1].dim() == 2:
        op = OPS["mm"]
    if op.body is not None and op.base_name not in WHOLE_ROWS:
        return NotImplemented
    if op.name in COMPOSITES and op.name != "where":
        return NotImplemented
    function, args, kwargs = operator_call(op, "", normalise(op, tuple(raw)))
    writing = writing_overload(function)
    if writing is None:
        return NotImplemented
    outs = out if isinstance(out, tuple | list) else (out,)
    names = written_by(function.overloadpacket.__name__, writing._overloadname)
    return ask_operator(writing, args, {**kwargs, **dict(zip(names, outs, strict=False))})


def factory_call(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What the innermost mode makes of a factory; NotImplemented for what is no factory of torch,
    or is called in a way that its operator has not."""
    if name not in _FACTORIES and name not in _LIKE and name not in _DRAWS:
        return NotImplemented
    named = {k: v for k, v in kwargs.items() if v is not None}
    requires_grad = named.pop("requires_grad", False)
    if "layout" in named:
        return NotImplemented
    if (out := named.pop("out", None)) is not None:
        call = None if name == "randn" else call_of_function(name, args, named)
        if call is None or (writing := writing_overload(call[0])) is None:
            return NotImplemented
        return ask_operator(writing, call[1], {"out": out})
    if name in _FACTORIES:
        named["device"] = resolve(named.get("device"))
    if name in _DRAWS and not (name == "normal" and len(args) > 2):
        if name == "poisson" or name == "multinomial":
            return ask(name, tuple(args), named)
    else:
        named.setdefault("pin_memory", False)
    call = call_of_function(name, args, named)
    if call is None:
        return NotImplemented
    result = ask_operator(*call)
    return result.requires_grad_() if requires_grad else result


def in_parts(op: Op, args: Sequence[Any]) -> Any:
    """A row's result of the operators that torch makes it of; NotImplemented for others."""
    composite = None if LOCAL.inference else COMPOSITES.get(op.name)
    return NotImplemented if composite is None else composite(*args)


def operator_call(op: Op, end: str, args: Sequence[Any]) -> Call:
    """What a mode or a class is asked for: torch's operator of a row's call, with its arguments.

    `end` is `_` for the form that writes. An operator that torch has not is the row itself.
    """
    if op.name == "_to_copy":
        return namespace("aten")._to_copy.default, *_copied(*args)
    if op.name == "matmul" and args[1].dim() == 1 and args[0].dim() <= 2 and not LOCAL.inference:
        packet = namespace("aten").mv if args[0].dim() == 2 else namespace("aten").dot
        return packet.default, tuple(args), {}
    if (places := _OTHERWISE.get(op.base_name)) is not None:
        order = [args[at] if isinstance(at, int) else at[0] for at in places]
        return getattr(namespace("aten"), op.base_name).default, tuple(order), {}
    if op.name == "squeeze" and isinstance(args[1], tuple) and len(args[1]) == 1:
        packet = getattr(namespace("aten"), f"squeeze{end}")
        return packet.dim, (args[0], args[1][0]), {}
    if LOCAL.composite and op.base_name in _OF_NUMBERS and type(args[1]) in NUMBERS:
        packet = getattr(namespace("aten"), op.base_name + end)
        if op.schema.args[2:] and op.schema.args[2].name == "rounding_mode":
            return packet.Scalar_mode, tuple(args[:2]), {"rounding_mode": args[2]}
        return packet.Scalar, tuple(args[: 3 if args[2:] not in ((), (1,)) else 2]), {}
    if LOCAL.node is not None:
        operator, args = _in_formula(op, args)
        if isinstance(operator, OpOverload):
            return operator, tuple(args), _options_of(operator)
    if op.name == "slice":
        self, dim, start, stop, *step = args
        places = (self, dim, start or 0, sys.maxsize if stop is None else stop)
        return namespace("aten").slice.Tensor, (*places, *step) if step != [1] else places, {}
    if op.base_name in ("all", "any") and isinstance(args[1], tuple) and len(args[1]) == 1:
        args = (args[0], args[1][0], *args[2:])
    if op.base_name == "sort" and args[3] is False:
        args = (*args[:3], None)
    call = call_of_row(op, end, args)
    if call is not None:
        return _of_spread(call) if op.base_name in _SPREADS else call
    function: OpOverload = getattr(namespace("aten"), op.base_name + end).default
    return function, *called(op, args)


# Operators that take more than their rows, or in another order: places of the row's arguments, and
# values that are always the same.
_OTHERWISE: dict[str, tuple[Any, ...]] = {
    "_cdist_forward": (0, 1, 2, (None,)),
    "elu_backward": (0, 2, 3, 4, (False,), 1),
    "leaky_relu_backward": (0, 1, 2, (False,)),
}
_SPREADS = frozenset(("std", "std_mean", "var", "var_mean"))


def _of_spread(call: Call) -> Call:
    """A variance by its correction, of which torch makes the others."""
    function, (self, *rest), named = call
    if function._overloadname == "default" and rest:
        return function.overloadpacket.correction, (self,), {"correction": int(rest[0])}
    if function._overloadname == "dim":
        named = {"correction": int(rest[1]) if len(rest) > 1 else 1}
        if len(rest) > 2 and rest[2]:
            named["keepdim"] = True
        return function.overloadpacket.correction, (self, rest[0]), named
    return call


# Rows of which C++ has a form for numbers; Python's numbers are tensors there.
_OF_NUMBERS = frozenset(("add", "sub", "mul", "div"))
# Rows whose gradient is zero everywhere.
_FLAT = ("ceil", "div", "floor", "round", "sgn", "sign", "trunc")
# Rows of gradients, and what torch's operators of the same arguments are called.
_GRADIENTS = {"_batch_norm_backward": "native_batch_norm_backward",
              "_layer_norm_backward": "native_layer_norm_backward",
              "_group_norm_backward": "native_group_norm_backward"}  # fmt: skip


def _in_formula(op: Op, args: Sequence[Any]) -> tuple[Op | OpOverload, Sequence[Any]]:
    """A row's call in a derivative as torch's formulas have it, which are written in C++."""
    row = getattr(LOCAL.node, "op", None)
    of = "" if row is None else row.base_name
    if op.base_name in ("mul", "div") and of not in ("mul", "div") and type(args[1]) in NUMBERS:
        number = float(args[1]) if of == "pow" else args[1]
        return getattr(namespace("aten"), op.base_name).Scalar, (args[0], number)
    if op.base_name == "pow" and of == "pow" and type(args[1]) is int:
        return op, (args[0], float(args[1]))
    if op.base_name.endswith("softmax_backward_data") and args[3] is None:
        return op, (*args[:3], args[0].dtype)
    if op.base_name == "_embed":
        return _of_view(op, args)
    if op.base_name == "zeros" and LOCAL.grads and isinstance(LOCAL.grads[0], Tensor):
        grad = LOCAL.grads[0]
        if of in _FLAT:
            return namespace("aten").zeros_like.default, (grad,)
        return namespace("aten").new_zeros.default, (grad, list(args[0]))
    if op.base_name in _GRADIENTS:
        function = getattr(namespace("aten"), _GRADIENTS[op.base_name]).default
        return function, [list(a) if isinstance(a, tuple) else a for a in args]
    return op, args


# Rows whose gradient torch adds to zeros that it makes by all options of a tensor.
_BY_OPTIONS = frozenset(("index", "index_select"))


def _options_of(function: OpOverload) -> dict[str, Any]:
    """The options by which torch's formula makes a tensor like the gradient; {} for defaults."""
    row = getattr(LOCAL.node, "op", None)
    if function.overloadpacket.__name__ != "new_zeros" or row is None:
        return {}
    if row.base_name not in _BY_OPTIONS:
        return {}
    grad = LOCAL.grads[0]
    return {"dtype": grad.dtype, "layout": DOOR["strided"], "device": grad.device}


def _of_view(op: Op, args: Sequence[Any]) -> tuple[Op | OpOverload, Sequence[Any]]:
    """The gradient of a view as torch's: of a selected index, or of a slice."""
    grad, size, stride, offset = args
    shape = list(grad.shape)
    for dim, count in enumerate(size):
        step = prod(size[dim + 1 :])
        first = offset // step if step else 0
        others = [prod(size[d + 1 :]) for d in range(len(size)) if d != dim]
        if offset != first * step or first >= count:
            continue
        if shape == [*size[:dim], *size[dim + 1 :]] and list(stride) == others:
            function = namespace("aten").select_backward.default
            return function, (grad, list(size), dim, first)
        same = len(shape) == len(size) and [*shape[:dim], *shape[dim + 1 :]] == [
            *size[:dim], *size[dim + 1 :]
        ]  # fmt: skip
        if same and [*stride[:dim], *stride[dim + 1 :]] == others and stride[dim] == step:
            function = namespace("aten").slice_backward.default
            return function, (grad, list(size), dim, first, first + shape[dim], 1)
    return op, args


def _copied(
    self: Tensor, dtype: Dtype, device: Device, memory_format: str | None = None
) -> tuple[tuple[Tensor], dict[str, Any]]:
    """The arguments of _to_copy by name: what changes; a device alone brings dtype and layout."""
    named: dict[str, Any] = {} if dtype is self.dtype else {"dtype": dtype}
    if device != self.device:
        alone = {} if named else {"dtype": dtype, "layout": getattr(self, "layout")}  # noqa: B009
        named.update(alone, device=device)
    if memory_format is not None:
        named["memory_format"] = memory_format
    return (self,), named


def called(op: Op, args: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments of a call, without defaults by name or at the end."""
    places: list[Any] = []
    named: dict[str, Any] = {}
    count = 0  # of the places up to the last that is no default
    for arg, value in zip(op.schema.args, args, strict=True):
        default = arg.has_default and (value is arg.default or value is None)
        if not arg.keyword_only:
            places.append(value)
            count = count if default else len(places)
        elif not default:
            named[arg.name] = value
    return tuple(places[:count]), named


def through_mode(name: str, value: Tensor) -> Any:
    """What the innermost mode makes of an operator of one tensor that is no row; else `value`."""
    if not (MODES.active and LOCAL.dispatches):
        return value
    options: dict[str, object] = {}
    if name == "ones_like":  # by which torch begins a backward pass
        options = {"pin_memory": False, "memory_format": DOOR["preserve_format"]}
    return ask_operator(getattr(namespace("aten"), name).default, (value,), options)


DOOR.update(through_mode=through_mode, operator_of_mode=ask)


def ask_of_user(
    func: OpOverload, rules: Mapping[type, Callable[..., Any]], args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:  # fmt: skip
    """What the innermost mode makes of a user's operator; `rules` are the operator's for classes
    of modes. Arguments that are defaults are left out by name and at the end."""
    declared = func._schema.arguments

    def is_default(argument: Argument, value: object) -> bool:
        return (
            argument.has_default_value()
            and not isinstance(value, Tensor)
            and bool(value == argument.default_value)
        )

    places, named = tuple(args), dict(kwargs)
    for argument in declared[len(args) :]:
        if is_default(argument, named[argument.name]):
            del named[argument.name]
    while places and is_default(declared[len(places) - 1], places[-1]):
        places = places[:-1]
    return ask_operator(func, places, named, rules.get(type(LOCAL.dispatches[-1])))


def ask_operator(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], rule: Callable[..., Any] | None = None
) -> Any:
    if not LOCAL.dispatches:
        return func(*args, **kwargs)
    modes, excluded, composite = LOCAL.dispatches, LOCAL.exclude, LOCAL.composite
    below, SUBCLASS.below = SUBCLASS.below, 0
    LOCAL.dispatches, LOCAL.exclude = modes[:-1], excluded | _AUTOGRAD
    LOCAL.composite = False
    try:
        if rule is not None:
            return rule(modes[-1], func, (), args, kwargs)
        return modes[-1].__torch_dispatch__(func, (), args, kwargs)
    finally:
        LOCAL.dispatches, LOCAL.exclude, LOCAL.composite = modes, excluded, composite
        SUBCLASS.below = below
