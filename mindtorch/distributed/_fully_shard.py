"""Owns fully_shard: parameters lie in parts over a mesh, and are whole while a module computes.

Before a module's forward each process gathers its parameters; when a gradient arrives it is
reduced, and each process keeps that of its part. Refused by name: memory of processes that is
offloaded, meshes of parameters of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import mindtorch
from mindtorch import nn

from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from .._tensor.types import Self
from ..utils._pytree import tree_map_only
from . import get_world_size, init_process_group, is_initialized
from .device_mesh import DeviceMesh, init_device_mesh
from .tensor._api import DTensor, DTensorSpec, distribute_tensor
from .tensor._redistribute import Placements, redistributed
from .tensor.placement_types import Partial, Placement, Replicate, Shard

_STATE = "_fully_shard_state"


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of parameters while they compute, of reductions, and of a module's results."""

    param_dtype: Dtype | None = None
    reduce_dtype: Dtype | None = None
    output_dtype: Dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parameters stay on their devices."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters wait on the cpu; mindtorch has it for meshes of cpus alone."""

    pin_memory: bool = True


class UnshardHandle:
    """What `unshard(async_op=True)` gives."""

    def wait(self) -> None:
        """Nothing: the parameters are whole already."""


class _ShardedParameters:
    """The parameters that one call of fully_shard is about, and where modules have them."""

    def __init__(
        self, module: nn.Module, places: dict[nn.Parameter, list[tuple[nn.Module, str]]],
        mesh: DeviceMesh, policy: MixedPrecisionPolicy, reshards: bool | int | None,
    ) -> None:  # fmt: skip
        self.module, self.mesh, self.policy, self.reshards = module, mesh, policy, reshards
        self.places = list(places.values())
        self.root: bool | None = None
        self.is_whole = False
        self.divisor: float | None = None
        self.syncs = True
        # By sharded parameter: sums of whole gradients that are not reduced yet.
        self.unreduced: dict[int, Tensor] = {}
        # Whole parameters of which gradients are to come: the graph holds them weakly.
        self.waiting: dict[int, nn.Parameter] = {}

    def unshard(self) -> None:
        """Modules have whole parameters."""
        if self.is_whole:
            return
        self.is_whole = True
        for pairs in self.places:
            module, name = pairs[0]
            sharded = module._parameters[name]
            assert isinstance(sharded, DTensor)
            whole = self._whole(sharded)
            for module, name in pairs:
                vars(module).setdefault("_sharded_parameters", {})[name] = sharded
                module._parameters[name] = whole

    def _whole(self, sharded: DTensor) -> nn.Parameter:
        local = sharded._local_tensor.detach().to(self.policy.param_dtype or sharded.dtype)
        everywhere = (Replicate(),) * self.mesh.ndim
        full = redistributed(local, sharded.shape, self.mesh, sharded.placements, everywhere)
        full = full.view_as(full) if full is sharded._local_tensor else full
        whole = nn.Parameter(full, sharded.requires_grad)
        if whole.requires_grad and mindtorch.is_grad_enabled():
            self.waiting[id(whole)] = whole
            whole.register_post_accumulate_grad_hook(lambda p: self._reduce(p, sharded))
        return whole

    def _reduce(self, whole: Tensor, sharded: DTensor) -> None:
        """Give the sharded parameter its part of the gradient."""
        with mindtorch.no_grad():
            grad, whole.grad = whole.grad, None
            assert grad is not None
            before = self.unreduced.pop(id(sharded), None)
            grad = grad if before is None else before + grad
            if self.syncs:
                self._share(grad, sharded)
            else:
                self.unreduced[id(sharded)] = grad
        self.waiting.pop(id(whole), None)
        self.reshard()

    def _share(self, grad: Tensor, sharded: DTensor) -> None:
        """Reduce a gradient, and add this process's part to the sharded parameter's."""
        now: Placements = (Partial("avg" if self.divisor is None else "sum"),) * self.mesh.ndim
        grad = grad.to(self.policy.reduce_dtype or grad.dtype)
        local = redistributed(grad, sharded.shape, self.mesh, now, sharded.placements)
        local = local if self.divisor is None else local / self.divisor
        spec = DTensorSpec(self.mesh, sharded.placements, sharded._spec.tensor_meta)
        part = DTensor(local.to(sharded.dtype), spec)
        if sharded.grad is None:
            sharded.grad = part
        else:
            sharded.grad += part

    def reshard(self) -> None:
        """Modules have their parts again."""
        if not self.is_whole:
            return
        self.is_whole = False
        for pairs in self.places:
            for module, name in pairs:
                module._parameters[name] = vars(module)["_sharded_parameters"].pop(name)

    def before(self, module: nn.Module, args: object, kwargs: object) -> object:
        """The hook before forward."""
        if self.root is None:
            for inner in module.modules():
                state = vars(inner).get(_STATE)
                if state is not None and state.root is None:
                    state.root = inner is module
        self.unshard()
        if self.policy.param_dtype is None or not self.policy.cast_forward_inputs:
            return None
        return _cast((args, kwargs), self.policy.param_dtype)

    def after(self, module: nn.Module, args: object, output: object) -> object:
        """The hook after forward."""
        if (not self.root) if self.reshards is None else self.reshards:
            self.reshard()
        return _cast(output, self.policy.output_dtype)


def _cast(values: object, dtype: Dtype | None) -> object:
    if dtype is None:
        return values
    return tree_map_only(Tensor, lambda t: t.to(dtype) if t.is_floating_point() else t, values)


def _refuse_deepcopy(self: object, memo: object) -> NoReturn:
    raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


class FSDPModule(nn.Module):
    """What modules that fully_shard was applied to are, besides what they were."""

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        """An instance of the class before."""
        before: Any = cls.__mro__[2]
        instance = before.__new__(before, *args, **kwargs)
        instance.__init__(*args, **kwargs)
        return instance

    def _fully_sharded(self) -> _ShardedParameters:
        state: _ShardedParameters = vars(self)[_STATE]
        return state

    def _each(self, recurse: bool) -> Iterable[_ShardedParameters]:
        """The states of this module, and of those within."""
        modules = self.modules() if recurse else [self]
        return [vars(m)[_STATE] for m in modules if _STATE in vars(m)]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather this module's own parameters."""
        self._fully_sharded().unshard()
        return UnshardHandle() if async_op else None

    def reshard(self) -> None:
        """Keep the parts of this module's own parameters alone."""
        self._fully_sharded().reshard()

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether parameters are in parts between forward and backward."""
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(
                f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}"
            )
        for state in self._each(recurse):
            state.reshards = reshard_after_forward

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Divide sums of gradients by `factor` instead of by the number of processes."""
        self._fully_sharded().divisor = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Whether a backward pass reduces gradients; those that were not wait for one that does."""
        for state in self._each(recurse):
            state.syncs = requires_gradient_sync

    def _no_change(self, *_: object, **__: object) -> None:
        """Nothing: gradients are reduced as they arrive, and nothing is fetched beforehand."""

    set_requires_all_reduce = set_is_last_backward = _no_change
    set_modules_to_forward_prefetch = set_modules_to_backward_prefetch = _no_change
    set_unshard_in_backward = set_reshard_after_backward = set_post_optim_event = _no_change

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        for state in self._each(True):
            state.reshard()
        return super()._apply(fn, recurse)


_PLACE = "mindtorch.distributed.fsdp._fully_shard._fsdp_init"  # torch's module of such classes
_CLASSES: dict[type, type] = {}


def _class_of(module: nn.Module) -> type:
    kind = type(module)
    if kind not in _CLASSES:
        members = {"__deepcopy__": _refuse_deepcopy, "__module__": _PLACE}
        _CLASSES[kind] = type(f"FSDP{kind.__name__}", (FSDPModule, kind), members)
    return _CLASSES[kind]


def _refuse(modules: Sequence[nn.Module], mesh: DeviceMesh, reshards: object) -> None:
    for module in modules:
        if isinstance(module, nn.ModuleList | nn.ModuleDict) and (
            type(module).forward is nn.Module.forward
        ):
            raise ValueError(
                f"fully_shard does not support containers that do not implement forward: {module}"
            )
        if _STATE in vars(module):
            raise AssertionError(
                "Each distinct composable distributed API can only be applied to a module once."
                f" fully_shard has already been applied to the following module:\n{module}"
            )
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    if mesh.ndim == 2 and mesh.mesh_dim_names is None:
        raise AssertionError("Please init the 2D mesh for HSDP with mesh_dim_names specified")
    if reshards is not None and not isinstance(reshards, int):
        raise ValueError(
            "reshard_after_forward should be a bool or an int representing the group size to"
            f" reshard to, not {reshards}"
        )
    size = mesh.size(mesh.ndim - 1)
    if type(reshards) is int and (reshards < 1 or size % reshards):
        raise ValueError(
            f"If passing reshard_after_forward as an int, it should be a factor of {size}, not"
            f" {reshards}"
        )


def _own_parameters(
    modules: Sequence[nn.Module], ignored: set[nn.Parameter]
) -> dict[nn.Parameter, list[tuple[nn.Module, str]]]:
    """The parameters of modules that no call before was about, and where modules have them."""
    places: dict[nn.Parameter, list[tuple[nn.Module, str]]] = {}
    seen: set[int] = set()

    def visit(module: nn.Module, name: str) -> None:
        if id(module) in seen or _STATE in vars(module):
            return
        seen.add(id(module))
        for key, p in module._parameters.items():
            if p is None or p in ignored:
                continue
            if not p.ndim:
                raise ValueError(
                    "fully_shard doesn't support scalar parameters. Change"
                    f" {name}{key} to a 1D tensor with numel equal to 1."
                )
            places.setdefault(p, []).append((module, key))
        for key, child in module.named_children():
            visit(child, f"{name}{key}.")

    for module in modules:
        visit(module, "")
    return places


def fully_shard(
    module: Any, *, mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[nn.Parameter], Shard | None] | None = None,
    mp_policy: MixedPrecisionPolicy | None = None, offload_policy: OffloadPolicy | None = None,
    ignored_params: set[nn.Parameter] | None = None,
) -> Any:  # fmt: skip
    """Share a module's parameters (those that no submodule shares already) between processes.

    The module, or list of modules, itself, of a class of its own, with parameters that are
    DTensors. NotImplementedError for an offload from other devices than cpus.
    """
    modules: list[nn.Module] = [module] if isinstance(module, nn.Module) else list(module)
    if mesh is None:
        if not is_initialized():
            init_process_group()
        first = next((p for m in modules for p in m.parameters()), None)
        kind = "cpu" if first is None or first.device.type == "meta" else first.device.type
        mesh = init_device_mesh(kind, (get_world_size(),))
    _refuse(modules, mesh, reshard_after_forward)
    if isinstance(offload_policy, CPUOffloadPolicy) and mesh.device_type != "cpu":
        raise NotImplementedError("fully_shard: CPUOffloadPolicy is there for meshes of cpus alone")
    places = _own_parameters(modules, ignored_params or set())
    for p, pairs in places.items():
        cut = (shard_placement_fn(p) if shard_placement_fn is not None else None) or Shard(0)
        whole: list[Placement] = [Replicate()] * (mesh.ndim - 1)
        spread = nn.Parameter(distribute_tensor(p.detach(), mesh, [*whole, cut]), p.requires_grad)
        for owner, name in pairs:
            owner._parameters[name] = spread
    policy = mp_policy or MixedPrecisionPolicy()
    state = _ShardedParameters(modules[0], places, mesh, policy, reshard_after_forward)
    for each in modules:
        vars(each)[_STATE] = state
        each.__class__ = _class_of(each)
        each.register_state_dict_pre_hook(lambda *_: state.reshard())
        each.register_load_state_dict_pre_hook(lambda *_: state.reshard())
    modules[0].register_forward_pre_hook(state.before, prepend=True, with_kwargs=True)
    modules[-1].register_forward_hook(state.after)
    return module


def register_fsdp_forward_method(module: nn.Module, method_name: str) -> None:
    """Parameters are whole in another method than forward too."""
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    method, state = getattr(module, method_name), module._fully_sharded()

    def wrapped(*args: object, **kwargs: object) -> object:
        changed: Any = state.before(module, args, kwargs)
        args, kwargs = (args, kwargs) if changed is None else changed
        return state.after(module, args, method(*args, **kwargs))

    setattr(module, method_name, wrapped)
