"""Owns FlopCounterMode: operations of products and convolutions, by torch's operators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import Any

from .._dispatch.dispatch_modes import TorchDispatchMode
from .._tensor.tensor import Tensor
from ..ops.namespaces import OpOverloadPacket, namespace
from ._pytree import tree_leaves, tree_map_only
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

Size = Sequence[int]

# By operator: operations of a call, of its tensors and `out_val`. Programs look up and add here.
flop_registry: dict[Any, Callable[..., int]] = {}


def shape_wrapper(formula: Callable[..., int]) -> Callable[..., int]:
    """A function of shapes and `out_shape` as one of tensors and `out_val`."""

    @wraps(formula)
    def of_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = tree_map_only(Tensor, lambda t: t.shape, (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)

    return of_tensors


def register_flop_formula(
    targets: Any, get_raw: bool = False
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Count operators (`torch.ops.mylib.foo`, or several) by a function of their arguments' shapes
    and `out_shape`; with `get_raw`, of the tensors and `out_val`.

    RuntimeError where an operator has one, ValueError for other targets.
    """

    def register(flop_formula: Callable[..., int]) -> Callable[..., int]:
        counted = flop_formula if get_raw else shape_wrapper(flop_formula)
        for target in tree_leaves(targets):
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket"
                    " (i.e. torch.ops.mylib.foo), JitFunction, or HigherOrderOperator, got"
                    f" {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = counted
        return counted

    return register


aten = namespace("aten")


@register_flop_formula(aten.mm)
def mm_flop(
    a_shape: Size, b_shape: Size, *_: object, out_shape: object = None, **__: object
) -> int:
    """Twice m * k * n, of (m, k) and (k, n)."""
    return 2 * prod(a_shape) * b_shape[1]


@register_flop_formula(aten.addmm)
def addmm_flop(
    self_shape: Size, a_shape: Size, b_shape: Size, out_shape: object = None, **_: object
) -> int:
    """Those of the product; what is added is not counted."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape: Size, b_shape: Size, out_shape: object = None, **_: object) -> int:
    """Twice b * m * k * n, of (b, m, k) and (b, k, n)."""
    return 2 * prod(a_shape) * b_shape[2]


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(
    self_shape: Size, a_shape: Size, b_shape: Size, out_shape: object = None, **_: object
) -> int:
    """Those of the product; what is added is not counted."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Size, w_shape: Size, out_shape: Size, transposed: bool = False) -> int:
    """Twice the weight's elements at each place of the output, or of what is transposed."""
    places = x_shape if transposed else out_shape
    return 2 * places[0] * prod(places[2:]) * prod(w_shape)


@register_flop_formula([aten.convolution, aten._convolution])
def conv_flop(
    x_shape: Size, w_shape: Size, _bias: object, _stride: object, _padding: object,
    _dilation: object, transposed: bool, *_: object, out_shape: Size, **__: object,
) -> int:  # fmt: skip
    """Those of a convolution of any number of axes."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape: Size, x_shape: Size, w_shape: Size, _bias: object, _stride: object,
    _padding: object, _dilation: object, transposed: bool, _output_padding: object,
    _groups: object, output_mask: Sequence[bool], out_shape: object, **_: object,
) -> int:  # fmt: skip
    """What the gradients of the input and of the weight take; groups count in the first alone."""
    met = x_shape if transposed else grad_out_shape
    of_weight = x_shape[1] * grad_out_shape[1] * prod(w_shape[2:])
    each = output_mask[0] * prod(w_shape) + output_mask[1] * of_weight
    return int(2 * met[0] * prod(met[2:]) * each)


def sdpa_flop_count(query_shape: Size, key_shape: Size, value_shape: Size) -> int:
    """The two products of attention over (batch, heads, length, features)."""
    batch, heads, queries, features = query_shape
    keys, values = key_shape[2], value_shape[3]
    return 2 * batch * heads * queries * keys * (features + values)


def sdpa_backward_flop_count(
    grad_out_shape: Size, query_shape: Size, key_shape: Size, value_shape: Size
) -> int:
    """Five products: the scores again, and the gradients of scores, values, queries and keys."""
    batch, heads, queries, features = query_shape
    keys, values = key_shape[2], value_shape[3]
    return 2 * batch * heads * queries * keys * (3 * features + 2 * values)


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
        self.flop_registry = flop_registry | {
            target: formula if getattr(formula, "_get_raw", False) else shape_wrapper(formula)
            for target, formula in (custom_mapping or {}).items()
        }
        self.mod_tracker = ModuleTracker()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        packet = func.overloadpacket
        if packet in self.flop_registry:
            flops = self.flop_registry[packet](*args, **kwargs, out_val=result)
            for module in set(self.mod_tracker.parents):
                self.flop_counts[module][packet] += flops
        return result

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
