"""Owns FullyShardedDataParallel: a module whose parameters lie in flat parts over processes.

Before its forward each process gathers them; gradients are reduced, and each process keeps those
of its part. Refused by name: parameters that are offloaded from other devices than the cpu.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum, auto
from typing import Any, cast

import mindtorch
from mindtorch import nn
from mindtorch.optim import Optimizer

from ..._tensor.device import device as Device
from ..._tensor.tensor import Tensor
from ...utils._pytree import tree_map_only
from .. import _calls, broadcast, get_rank, get_world_size, group
from .._group import ProcessGroup
from ..device_mesh import DeviceMesh, init_device_mesh
from ..tensor._api import distribute_tensor
from ..tensor.placement_types import Shard
from ._flat import FlatUnit
from ._optim import local_state, whole_state
from .api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from .wrap import wrapped_within

__all__ = ["FullyShardedDataParallel", "OptimStateKeyType"]
_PREFIX = "_fsdp_wrapped_module."
_CONFIGS: dict[StateDictType, tuple[type[StateDictConfig], type[OptimStateDictConfig]]] = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}
State = dict[str, Any]


class OptimStateKeyType(Enum):
    """By what an optimizer's state names parameters."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


class FullyShardedDataParallel(nn.Module):
    """A module around another, whose parameters lie in parts.

    TypeError for an unknown strategy; ValueError for parameters that one flat one cannot hold.
    """

    def __init__(
        self, module: nn.Module, process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None, cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Callable[..., Any] | None = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[nn.Module] | None = None,
        param_init_fn: Callable[[nn.Module], None] | None = None,
        device_id: int | str | Device | None = None,
        sync_module_states: bool = False, forward_prefetch: bool = False,
        limit_all_gathers: bool = True, use_orig_params: bool = False,
        ignored_states: Iterable[nn.Module | nn.Parameter] | None = None,
        device_mesh: DeviceMesh | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        strategy = ShardingStrategy.FULL_SHARD if sharding_strategy is None else sharding_strategy
        if device_mesh is not None:
            process_group = device_mesh.get_group(device_mesh.ndim - 1)
        several = isinstance(process_group, tuple)
        self.process_group: Any = process_group[0] if several else process_group
        if self.process_group is None:
            self.process_group = group.WORLD
        if not isinstance(self.process_group, ProcessGroup):
            raise TypeError(f"Invalid process group: {process_group!r}")
        self.rank, self.world_size = get_rank(self.process_group), get_world_size(process_group)
        if not isinstance(strategy, ShardingStrategy):
            raise TypeError(f"sharding_strategy should be a ShardingStrategy, got {strategy!r}")
        self.sharding_strategy, self.mixed_precision = strategy, mixed_precision or MixedPrecision()
        self.cpu_offload = cpu_offload or CPUOffload()
        left_out = set(ignored_modules or ())
        states = set(ignored_states or ())
        left_out |= {m for m in states if isinstance(m, nn.Module)}
        if auto_wrap_policy is not None:
            _refuse_wrapped(module)
            options = {
                "process_group": self.process_group, "sharding_strategy": strategy,
                "cpu_offload": cpu_offload, "mixed_precision": mixed_precision,
                "param_init_fn": param_init_fn, "device_id": device_id,
                "sync_module_states": sync_module_states, "use_orig_params": use_orig_params,
                "ignored_states": states or None,
            }  # fmt: skip
            wrapped_within(
                module, auto_wrap_policy,
                lambda m, **more: FullyShardedDataParallel(m, **{**options, **more}), left_out,
            )  # fmt: skip
        _placed(module, param_init_fn, device_id)
        without = {p for m in left_out for p in m.parameters()}
        without |= {p for p in states if isinstance(p, nn.Parameter)}
        without |= {p for m in self.fsdp_modules(module) for p in m.parameters()}
        if sync_module_states:
            for t in (*module.parameters(), *module.buffers()):
                if t not in without:
                    broadcast(t.detach(), group=self.process_group, group_src=0)
        self._fsdp_wrapped_module = module
        precision = self.mixed_precision
        if precision.buffer_dtype is not None:
            for m in module.modules():
                for key, b in m._buffers.items():
                    if b is not None and b.is_floating_point():
                        m._buffers[key] = b.to(precision.buffer_dtype)
        self._unit = FlatUnit(
            module, self.process_group, without, strategy is not ShardingStrategy.NO_SHARD,
            use_orig_params, (precision.param_dtype, precision.reduce_dtype),
        )  # fmt: skip
        self._is_root, self._summoned = True, False
        for inner in self.fsdp_modules(module):
            inner._is_root = False
        self._settings = _settings(StateDictType.FULL_STATE_DICT)
        self.register_load_state_dict_pre_hook(_add_prefix)

    @property
    def module(self) -> nn.Module:
        """The module within."""
        return self._fsdp_wrapped_module

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_fsdp_wrapped_module":
                raise
            return getattr(self._fsdp_wrapped_module, name)

    def __getitem__(self, key: Any) -> Any:
        return cast("Any", self._fsdp_wrapped_module)[key]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        precision = self.mixed_precision
        casts = precision.cast_root_forward_inputs if self._is_root else (
            precision.cast_forward_inputs
        )  # fmt: skip
        if precision.param_dtype is not None and casts:
            args, kwargs = tree_map_only(
                Tensor,
                lambda t: t.to(precision.param_dtype) if t.is_floating_point() else t,
                (args, kwargs),
            )
        if self._summoned or not self._unit.pieces:
            return self._fsdp_wrapped_module(*args, **kwargs)
        self._unit.unshard()
        try:
            return self._fsdp_wrapped_module(*args, **kwargs)
        finally:
            self._unit.reshard()

    @staticmethod
    def fsdp_modules(module: nn.Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The wrapped modules within a module, itself among them; those not in others."""
        modules = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        if root_only:
            within = {i for m in modules for i in m.module.modules()}
            modules = [m for m in modules if m not in within]
        return modules

    def check_is_root(self) -> bool:
        """Whether no other wraps it."""
        return self._is_root

    def apply(self, fn: Callable[[nn.Module], None]) -> Any:
        """Call `fn` for each module within, whose parameters are whole then."""
        with self.summon_full_params(self, writeback=True):
            return super().apply(fn)

    def _named(self, pairs: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        for name, value in pairs:
            yield (name.replace(_PREFIX, "") if self._summoned else name), value

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        """Parameters in parts; whole ones, by the module's own names, in `summon_full_params`."""
        return self._named(super().named_parameters(*args, **kwargs))

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """Buffers; by the module's own names in `summon_full_params`."""
        return self._named(super().named_buffers(*args, **kwargs))

    @staticmethod
    @contextmanager
    def summon_full_params(
        module: nn.Module, recurse: bool = True, writeback: bool = True, rank0_only: bool = False,
        offload_to_cpu: bool = False, with_grads: bool = False,
    ) -> Iterator[None]:  # fmt: skip
        """Inside, parameters are whole; what is written to them is kept with `writeback`."""
        if with_grads:
            raise NotImplementedError("summon_full_params: with_grads: gradients stay in parts")
        each = FullyShardedDataParallel.fsdp_modules(module)
        each = each if recurse else [m for m in each if m is module]
        each = [m for m in each if not m._summoned]
        for m in each:
            m._summoned = True
            if m._unit.pieces:
                m._unit.summon()
        try:
            yield
        finally:
            for m in each:
                m._summoned = False
                if m._unit.pieces:
                    m._unit.dismiss(writeback)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients add up in each process and are not reduced."""
        units = [m._unit for m in self.fsdp_modules(self)]
        for unit in units:
            unit.sync = False
        try:
            yield
        finally:
            for unit in units:
                unit.sync = True

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale the gradients of all parts so that their norm is `max_norm` at most; the norm."""
        grads, kind = [], float(norm_type)
        total = mindtorch.zeros(())
        for m in self.fsdp_modules(self):
            for p in m._unit.learned() if m._unit.pieces else ():
                if p.grad is None:
                    continue
                grads.append(p.grad)
                share = p.grad.detach().abs().float()
                total = total.to(share.device)
                if kind == float("inf"):
                    total = mindtorch.maximum(total, share.max()) if share.numel() else total
                else:
                    same = self.world_size if m._unit.count == 1 else 1
                    total = total + share.pow(kind).sum() / same
        op = "MAX" if kind == float("inf") else "SUM"
        _calls.all_reduce(total, op, self.process_group)
        total = total if op == "MAX" else total ** (1 / kind)
        scale = mindtorch.clamp(max_norm / (total + 1e-6), max=1.0)
        for grad in grads:
            grad.mul_(scale.to(grad.dtype))
        return total.to(grads[0].dtype) if grads else total

    @staticmethod
    def set_state_dict_type(
        module: nn.Module, state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:  # fmt: skip
        """What state_dict gives from here on; what it gave. RuntimeError for options of another."""
        settings = _settings(state_dict_type, state_dict_config, optim_state_dict_config)
        before = FullyShardedDataParallel.get_state_dict_type(module)
        for m in FullyShardedDataParallel.fsdp_modules(module):
            m._settings = settings
        return before

    @staticmethod
    def get_state_dict_type(module: nn.Module) -> StateDictSettings:
        """What state_dict gives."""
        each = FullyShardedDataParallel.fsdp_modules(module)
        return each[0]._settings if each else _settings(StateDictType.FULL_STATE_DICT)

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: nn.Module, state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> Iterator[None]:  # fmt: skip
        """Inside, state_dict and load_state_dict are of another kind."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            for m in FullyShardedDataParallel.fsdp_modules(module):
                m._settings = before

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """The state of the module within, by its own names."""
        settings = self._settings
        destination, prefix = kwargs.get("destination"), kwargs.get("prefix", "")
        state: State = {} if destination is None else destination
        before = set(state)
        local = settings.state_dict_type is StateDictType.LOCAL_STATE_DICT
        with ExitStack() as stack:
            if not local and self._unit.pieces and not self._summoned:
                stack.enter_context(self.summon_full_params(self, recurse=False, writeback=False))
            inner = nn.Module.state_dict(
                self._fsdp_wrapped_module, destination=destination, prefix=prefix,
                keep_vars=kwargs.get("keep_vars", False),
            )  # fmt: skip
        state = inner if destination is None else state
        config = settings.state_dict_config
        if settings.state_dict_type is StateDictType.SHARDED_STATE_DICT:
            self._cut(state, prefix)
        if config.offload_to_cpu:
            for name in set(state) - before:
                state[name] = state[name].cpu()
        if getattr(config, "rank0_only", False) and self.rank:
            for name in set(state) - before:
                del state[name]
        return state

    def _cut(self, state: State, prefix: str) -> None:
        """Lay whole parameters over the processes as DTensors."""
        for piece in self._unit.pieces:
            for name in (f"{prefix}{piece.name}",):
                kind = state[name].device.type
                mesh = init_device_mesh(kind, (self.world_size,))
                state[name] = distribute_tensor(state[name].detach(), mesh, [Shard(0)])

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Take a state of whole tensors, of DTensors, or of flat parts."""
        if self._settings.state_dict_type is StateDictType.LOCAL_STATE_DICT:
            return super().load_state_dict(state_dict, strict, assign)
        whole = {
            name: v.full_tensor() if hasattr(v, "full_tensor") else v
            for name, v in state_dict.items()
        }
        with self.summon_full_params(self, writeback=True):
            return super().load_state_dict(whole, strict, assign)

    @staticmethod
    def optim_state_dict(
        model: nn.Module, optim: Optimizer, optim_state_dict: State | None = None,
        group: ProcessGroup | None = None,
    ) -> State:  # fmt: skip
        """An optimizer's state by names of parameters, with whole tensors."""
        return whole_state(model, optim, optim_state_dict)

    @staticmethod
    def optim_state_dict_to_load(
        model: nn.Module, optim: Optimizer, optim_state_dict: State,
        is_named_optimizer: bool = False, load_directly: bool = False,
        group: ProcessGroup | None = None,
    ) -> State:  # fmt: skip
        """What `optim` loads, of a state by names with whole tensors."""
        state = local_state(model, optim, optim_state_dict)
        if load_directly:
            optim.load_state_dict(state)
        return state


FullyShardedDataParallel.__module__ = "mindtorch.distributed.fsdp.fully_sharded_data_parallel"


def _add_prefix(module: nn.Module, state: State, prefix: str, *_: object) -> None:
    """Let names of the module within be found."""
    for name in list(state):
        if name.startswith(prefix) and not name.startswith(f"{prefix}{_PREFIX}"):
            state[f"{prefix}{_PREFIX}{name[len(prefix) :]}"] = state.pop(name)


def _settings(
    kind: StateDictType, config: StateDictConfig | None = None,
    optim_config: OptimStateDictConfig | None = None,
) -> StateDictSettings:  # fmt: skip
    state, optim = _CONFIGS[kind]
    if config is not None and type(config) is not state:
        raise RuntimeError(f"Expected state_dict_config of type {state} but got {type(config)}")
    if optim_config is not None and type(optim_config) is not optim:
        raise RuntimeError(
            f"Expected optim_state_dict_config of type {optim} but got {type(optim_config)}"
        )
    return StateDictSettings(kind, config or state(), optim_config or optim())


def _refuse_wrapped(module: nn.Module) -> None:
    for name, inner in module.named_modules():
        if isinstance(inner, FullyShardedDataParallel):
            raise ValueError(
                "FSDP auto wrapping requires modules to not already have FSDP applied but found"
                f" {name} in\n{module}"
            )


def _placed(
    module: nn.Module,
    param_init_fn: Callable[[nn.Module], None] | None,
    device_id: int | str | Device | None,
) -> None:
    """Give parameters of meta memory, and move others to the device that is named."""
    device = None
    if device_id is not None:
        index = device_id if isinstance(device_id, int) else None
        device = mindtorch.device(device_id if index is None else f"npu:{index}")
    if any(p.is_meta for p in module.parameters()):
        for m in module.modules():
            if any(p.is_meta for p in m.parameters(recurse=False)):
                if param_init_fn is not None:
                    param_init_fn(m)
                else:
                    m.to_empty(device=device or "cpu", recurse=False)
                    cast("Any", m).reset_parameters()
    if device is not None:
        module.to(device)
