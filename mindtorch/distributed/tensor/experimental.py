"""torch.distributed.tensor.experimental: functions of local tensors; the rest is refused."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..._compat.refusals import refusals
from ..._tensor.tensor import Tensor
from ...utils._pytree import tree_flatten, tree_unflatten
from ..device_mesh import DeviceMesh
from ._api import DTensor, implicit_replication
from .placement_types import Placement

__path__: list[str] = []  # what is below is in absent_modules.txt
__all__ = ["implicit_replication", "local_map"]
__getattr__ = refusals(
    "torch.distributed.tensor.experimental", "operators have their rules here",
    ("context_parallel", "register_sharding"),
)  # fmt: skip

Layout = Sequence[Placement] | None


def local_map(
    func: Callable[..., Any] | None = None, out_placements: Any = None,
    in_placements: tuple[Layout, ...] | None = None,
    in_grad_placements: tuple[Layout, ...] | None = None, device_mesh: DeviceMesh | None = None,
    *, redistribute_inputs: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """`func` of local tensors, as a function of DTensors; a decorator without `func`.

    AssertionError for placements that are not one for each argument or result, ValueError for a
    tensor that lies in another way than `in_placements` say, unless it may be moved.
    """
    if func is None:
        return functools.partial(
            local_map, out_placements=out_placements, in_placements=in_placements,
            in_grad_placements=in_grad_placements, device_mesh=device_mesh,
            redistribute_inputs=redistribute_inputs,
        )  # fmt: skip
    return functools.partial(
        _mapped, func, out_placements, in_placements, in_grad_placements, device_mesh,
        redistribute_inputs,
    )  # fmt: skip


def _local(
    arg: DTensor, layouts: tuple[Layout, ...] | None, grads: tuple[Layout, ...] | None, place: int,
    moves: bool,
) -> Tensor:  # fmt: skip
    if layouts is not None:
        layout = layouts[place]
        if layout is None:
            raise AssertionError(f"DTensor input {arg} expects placements but received None!")
        if arg.placements != tuple(layout):
            if not moves:
                raise ValueError(
                    f"arg {arg} in local_map has a mismatched placements: arg placements is "
                    f"{arg.placements} but the input placements is {tuple(layout)}! If "
                    "redistribute_inputs is wanted, set redistribute_inputs=True to local_map."
                )
            arg = arg.redistribute(placements=layout)
    if grads is None:
        return arg.to_local()
    layout = grads[place]
    if layout is None:
        raise AssertionError(f"DTensor input {arg} expects in grad placements but received None!")
    return arg.to_local(grad_placements=layout)


def _mapped(
    func: Callable[..., Any], out_placements: Any, in_placements: tuple[Layout, ...] | None,
    in_grad_placements: tuple[Layout, ...] | None, mesh: DeviceMesh | None, moves: bool,
    *args: Any, **kwargs: Any,
) -> Any:  # fmt: skip
    values, form = tree_flatten(args)
    if in_placements is not None and len(in_placements) != len(values):
        raise AssertionError(
            f"in_placements length {len(in_placements)} does not match the number of input args "
            f"{len(values)}!"
        )
    spread = False
    for i, value in enumerate(values):
        if isinstance(value, DTensor):
            mesh, spread = mesh or value.device_mesh, True
            values[i] = _local(value, in_placements, in_grad_placements, i, moves)
        elif (
            in_placements is not None
            and not isinstance(value, Tensor)
            and in_placements[i] is not None
        ):
            raise AssertionError(
                f"Non-Tensor input {value} expects None placements but received {in_placements[i]}!"
            )
    result = func(*tree_unflatten(values, form), **kwargs)
    if not spread:
        return result
    outputs, form = tree_flatten(result)
    layouts = out_placements if isinstance(out_placements, tuple) else (out_placements,)
    if len(outputs) != len(layouts):
        raise AssertionError(
            "local_map requires one PlacementType be provided for each output value, received "
            f"{len(layouts)} out_placements but {len(outputs)} is expected!"
        )
    for i, (output, layout) in enumerate(zip(outputs, layouts, strict=True)):
        if isinstance(output, DTensor):
            raise AssertionError(
                f"torch.Tensor output expected but received {type(output)}: {output}"
            )
        if isinstance(output, Tensor):
            outputs[i] = DTensor.from_local(output, mesh, layout, run_check=False)
        elif layout is not None:
            raise AssertionError(
                f"Non-tensor output {output} expects None placements but received {layout}!"
            )
    return tree_unflatten(outputs, form)
