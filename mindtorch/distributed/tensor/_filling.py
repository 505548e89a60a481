"""Owns what is made over a mesh as a whole: the parameters of modules, and filled tensors."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import mindtorch
from mindtorch import nn

from ..._tensor.dtype import dtype as Dtype
from ..._tensor.geometry import Size, contiguous_strides
from ..device_mesh import DeviceMesh, current_mesh
from ._api import DTensor, DTensorSpec, Layouts, TensorMeta, distribute_tensor
from ._redistribute import REPLICATE, local_shape_and_offset


def _copied_module(module: nn.Module, mesh: DeviceMesh) -> None:
    """What a module itself has becomes copies on the mesh, unless it is over one already."""
    whole = [REPLICATE] * mesh.ndim
    for name, p in module._parameters.items():
        if p is not None and not isinstance(p, DTensor):
            spread = distribute_tensor(p.data, mesh, whole)
            module.register_parameter(name, nn.Parameter(spread, requires_grad=p.requires_grad))
    for name, buffer in module._buffers.items():
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[name] = distribute_tensor(buffer, mesh, whole)


def distribute_module(
    module: nn.Module, device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, nn.Module, DeviceMesh], None] | None = None,
    input_fn: Callable[..., Any] | None = None, output_fn: Callable[..., Any] | None = None,
) -> nn.Module:  # fmt: skip
    """Parameters and buffers over a mesh: by `partition_fn` of each submodule, copies else.

    `input_fn(module, inputs, mesh)` and `output_fn(module, outputs, mesh)` become hooks.
    """
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError(
            "distribute_module should only be called once on a module, but it has already been"
            " called on this module!"
        )
    mesh = device_mesh or current_mesh()
    for name, submodule in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, submodule, mesh)
        _copied_module(submodule, mesh)
    for what, function in (("input", input_fn), ("output", output_fn)):
        if function is None:
            continue
        hook = _hook(what, function, mesh)
        if what == "input":
            module.register_forward_pre_hook(hook)
        else:
            module.register_forward_hook(hook)
    vars(module)["_distribute_module_applied"] = True
    return module


def _hook(what: str, function: Callable[..., Any], mesh: DeviceMesh) -> Callable[..., Any]:
    """A module's hook that calls `function(module, values, mesh)`, or the older form without it."""
    count = len(inspect.signature(function).parameters)
    if count == 2:
        warnings.warn(
            f"Deprecating {what}_fn that takes two arguments ({what}s, device_mesh), please use"
            f" {what}_fn that takes in (module, {what}s, device_mesh) instead!",
            FutureWarning,
            stacklevel=3,
        )
        return lambda module, *values: function(values[-1], mesh)
    if count != 3:
        raise ValueError(f"{what}_fn should take in 3 arguments, but got {count} arguments!")
    return lambda module, *values: function(module, values[-1], mesh)


def _factory(name: str) -> Callable[..., DTensor]:
    """A function of torch that makes a tensor of each process's part."""
    make = getattr(mindtorch, name)

    def function(
        *size: Any, dtype: Dtype | None = None, layout: Any = mindtorch.strided,
        requires_grad: bool = False, device_mesh: DeviceMesh | None = None,
        placements: Layouts = None, **fill: Any,
    ) -> DTensor:  # fmt: skip
        if name == "full":
            size, fill = size[:1], fill or {"fill_value": size[1]}
        mesh = device_mesh or current_mesh()
        shape = Size(size[0] if len(size) == 1 and isinstance(size[0], Sequence) else size)
        placements = placements or [REPLICATE] * mesh.ndim
        if mesh.ndim != len(placements):
            raise AssertionError("mesh dimension does not match the length of placements")
        if layout != mindtorch.strided:
            raise AssertionError("layout value not supported!")
        local_shape = local_shape_and_offset(shape, mesh, placements)[0]
        local = make(local_shape, *fill.values(), dtype=dtype, device=mesh.device_type)
        meta = TensorMeta(shape, contiguous_strides(shape), local.dtype)
        return DTensor(
            local, DTensorSpec(mesh, tuple(placements), meta), requires_grad=requires_grad
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`torch.{name}` over a mesh; without placements a copy in each process."
    function.__module__ = "mindtorch.distributed.tensor"
    return function


empty, full, ones, rand, randn, zeros = map(
    _factory, ("empty", "full", "ones", "rand", "randn", "zeros")
)
