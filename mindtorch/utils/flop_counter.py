"""Owns FlopCounterMode: operations of products and convolutions, by torch's operators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

from .._autograd.grad_mode import LOCAL
from .._dispatch.dispatch_modes import TorchDispatchMode
from .._tensor.tensor import Tensor
from ..ops.costs import elements, lookup, sized
from ..ops.namespaces import OpOverload, OpOverloadPacket, namespace
from ..ops.spec import OPS
from ._pytree import tree_leaves, tree_map_only
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

_FORMULAS: dict[OpOverloadPacket, Callable[..., int]] = {}  # of programs, for all modes


def register_flop_formula(
    targets: Any, get_raw: bool = False
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Count operators (`torch.ops.mylib.foo`, or several) by a function of their arguments' shapes
    and `out_shape`; with `get_raw`, of the tensors and `out_val`.

    RuntimeError where an operator has one, ValueError for other targets.
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        if get_raw:
            setattr(formula, "_get_raw", True)  # noqa: B010
        for target in tree_leaves(targets):
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket"
                    " (i.e. torch.ops.mylib.foo), JitFunction, or HigherOrderOperator, got"
                    f" {target} which is of type {type(target)}"
                )
            if target in _FORMULAS:
                raise RuntimeError(f"duplicate registrations for {target}")
            _FORMULAS[target] = formula
        return formula

    return register


Arguments = Mapping[str, Any]


def _convolution(args: Arguments, outs: Sequence[Tensor], flops: int) -> Iterator[tuple[str, int]]:
    yield "convolution" if LOCAL.task is None else "convolution_backward", flops


def _weight_grad(args: Arguments, outs: Sequence[Tensor], flops: int) -> Iterator[tuple[str, int]]:
    """torch counts the products of channels of different groups, too."""
    yield "convolution_backward", flops * args["groups"]


def _convolution_backward(
    grad: Tensor, x: Tensor, weight: Tensor, bias_sizes: Any, stride: Any, padding: Any,
    dilation: Any, transposed: bool, output_padding: Any, groups: int, output_mask: Sequence[bool],
) -> int:  # fmt: skip
    """What the gradients of the input and of the weight take; groups count in the first alone."""
    met = (x if transposed else grad).shape
    places = 2 * met[0] * prod(met[2:])
    channels = x.shape[1] * grad.shape[1]
    of_weight = channels * prod(weight.shape[2:])
    return int(places * (output_mask[0] * weight.numel() + output_mask[1] * of_weight))


# Rows that torch's operators of other names compute.
_OPERATORS: dict[str, Callable[..., Iterator[tuple[str, int]]]] = {
    "convolution": _convolution,
    "_convolution_weight_grad": _weight_grad,
}
# Those that torch counts under their own names.
_COUNTED = ("mm", "addmm", "bmm", "baddbmm")


def _counts(name: str, arguments: Arguments, outs: Sequence[Any]) -> Iterator[tuple[str, int]]:
    """torch's operators of a row's call, each with its operations."""
    op = OPS.get(name)
    if op is None or op.testing.cost in (elements, lookup) or not outs:
        return
    flops = op.testing.cost(arguments, outs).flops
    if name in _OPERATORS:
        yield from _OPERATORS[name](arguments, outs, flops)
    elif name in _COUNTED:
        yield name, flops


def _called(func: OpOverload, args: Any, kwargs: Any) -> tuple[str, dict[str, Any]]:
    """The name of an operator's row and its arguments by name."""
    name = str(func.overloadpacket).partition(".")[2]
    names = [a.name for a in OPS[name].schema.args] if name in OPS else []
    return name, dict(zip(names, args, strict=False)) | kwargs


def operator_of(func: OpOverload, args: Any, kwargs: Any) -> OpOverload:
    """The operator that torch runs where a row has another name: `addmm` for `linear`, say."""
    name, arguments = _called(func, args, kwargs)
    if name not in _OPERATORS:
        return func
    own = next((name for name, _ in _OPERATORS[name](arguments, (), 0)), None)
    return func if own is None else getattr(namespace("aten"), own).default


def _shapes(values: Any) -> Any:
    return tree_map_only(Tensor, lambda t: t.shape, values)


class FlopCounterMode(TorchDispatchMode):
    """`with FlopCounterMode() as counter:`; `get_total_flops()` sums what calls inside took.

    Backward passes are counted, and modules by their names. `custom_mapping` has functions of the
    arguments' shapes and `out_shape` for operators, of the tensors where `_get_raw` is set on them.
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Callable[..., int]] | None = None,
    ):
        super().__init__()
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.flop_registry = _FORMULAS | (custom_mapping or {})
        self.mod_tracker = ModuleTracker()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for operator, flops in self._of(func, args, kwargs or {}, result):
            for module in set(self.mod_tracker.parents):
                self.flop_counts[module][operator] += flops
        return result

    def _of(
        self, func: OpOverload, args: Any, kwargs: Any, result: Any
    ) -> Iterator[tuple[OpOverloadPacket, int]]:
        packet = func.overloadpacket
        custom = self.flop_registry.get(packet)
        if custom is not None:
            if getattr(custom, "_get_raw", False):
                yield packet, custom(*args, **kwargs, out_val=result)
            else:
                shapes = _shapes(args), _shapes(kwargs), _shapes(result)
                yield packet, custom(*shapes[0], **shapes[1], out_shape=shapes[2])
            return
        if packet is namespace("aten").convolution_backward:
            yield packet, _convolution_backward(*args, **kwargs)
            return
        name, arguments = _called(func, args, kwargs)
        for operator, flops in _counts(name, arguments, [*sized([result])]):
            yield getattr(namespace("aten"), operator), flops

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def get_total_flops(self) -> int:
        """Operations of all calls."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Operations by module and operator, all of them under "Global"."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Modules to `depth` and their operators: operations, and their share of all."""
        depth = self.depth if depth is None else depth
        rows: list[tuple[str, str, str]] = []
        for module in sorted(m for m in self.flop_counts if m != "Global"):
            if module.count(".") < depth:
                rows += self._rows(module, module.count("."))
        modules = [set(c.items()) for m, c in self.flop_counts.items() if m != "Global"]
        if set(self.flop_counts["Global"].items()) not in modules and self.get_total_flops():
            rows = self._rows("Global", 0) + [(f" {n}", f, s) for n, f, s in rows]
        return _text(rows or [("Global", "0", "0%")])

    def _rows(self, module: str, indent: int) -> list[tuple[str, str, str]]:
        """A module's sum and its operators."""
        whole = self.get_total_flops()
        unit = max(0, min(len(_UNITS) - 1, (len(str(whole)) - 2) // 3))
        counts = self.flop_counts[module]
        lines = [(module, sum(counts.values())), *((f" - {k}", v) for k, v in counts.items())]
        return [
            (
                " " * indent + name,
                f"{flops / 1000**unit:.3f}{_UNITS[unit]}",
                f"{flops / whole if whole else 0:.2%}",
            )
            for name, flops in lines
        ]


_UNITS = ("", "K", "M", "B", "T")


def _text(rows: list[tuple[str, str, str]]) -> str:
    table = [("Module", "FLOP", "% Total"), *rows]
    wide = [max(len(row[i]) for row in table) + (2 if i else 0) for i in range(3)]
    lines = [
        f"{name:<{wide[0]}}  {flops:>{wide[1]}}  {share:>{wide[2]}}" for name, flops, share in table
    ]
    return "\n".join([lines[0], "  ".join("-" * w for w in wide), *lines[1:]])
