"""Owns ZeroRedundancyOptimizer: each process updates some parameters and holds their state.

Refuses `overlap_with_ddp`: steps inside of backward.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

import mindtorch
import mindtorch.distributed as dist
from mindtorch._functional.queries import typename
from mindtorch.optim import Optimizer
from mindtorch.utils._pytree import tree_map_only

from ..algorithms.join import Join, Joinable, JoinHook

__all__ = ["ZeroRedundancyOptimizer"]
logger = logging.getLogger(__name__)
Groups = list[dict[str, Any]]


class _ZeROJoinHook(JoinHook):
    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self.zero = zero

    def main_hook(self) -> None:
        """Update this process's parameters, as in a step of its own."""
        self.zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer whose parameters are spread over the processes of a group, largest first.

    `optim` is this process's, of `optimizer_class`. `parameters_as_bucket_view`, which only saves
    time in torch, changes nothing. TypeError and ValueError for what are no parameters.
    """

    def __init__(
        self, params: Iterable[Any], optimizer_class: type[Optimizer],
        process_group: dist.ProcessGroup | None = None, parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False, **defaults: Any,
    ) -> None:  # fmt: skip
        params = self._verify_and_init_params(params)
        self._verify_same_dense_param_type()
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer: overlap_with_ddp: call step() after backward"
            )
        self.initialized = False
        Optimizer.__init__(self, params, defaults)
        Joinable.__init__(self)
        self.process_group: Any = dist.group.WORLD if process_group is None else process_group
        self.world_size = dist.get_world_size(self.process_group)
        self.rank = dist.get_rank(self.process_group)
        self.global_rank = dist.get_global_rank(self.process_group, self.rank)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._default_device = self._all_params[0].device
        self._is_trainable_mask = [p.requires_grad for p in self._all_params]
        self.optim = optimizer_class(self._partition_parameters()[self.rank], **defaults)
        self._sync_param_groups(self.optim.param_groups, self.param_groups)
        self._all_state_dicts: list[dict[str, Any]] = []
        self.initialized = True

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, on every rank; its parameters are spread as the others'."""
        super().add_param_group(param_group)
        if self.initialized:
            mine = self._partition_parameters()[self.rank]
            if len(mine) == len(self.optim.param_groups) + 1:
                self.optim.add_param_group(mine[-1])

    def _partition_parameters(self) -> list[Groups]:
        """The groups of each rank; a parameter goes to the rank that has the fewest numbers."""
        sizes = [0] * self.world_size
        ranks: list[Groups] = [[] for _ in sizes]
        for group in self.param_groups:
            params: list[list[Any]] = [[] for _ in sizes]
            for param in sorted(group["params"], key=lambda p: p.numel(), reverse=True):
                rank = sizes.index(min(sizes))
                params[rank].append(param)
                sizes[rank] += param.numel()
            for groups, part in zip(ranks, params, strict=True):
                groups.append({**group, "params": part})
        return ranks

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update this process's parameters, then take those of the others."""
        Join.notify_join_context(self)
        trainable = [p.requires_grad for p in self._all_params]
        if trainable != self._is_trainable_mask:
            logger.warning(
                "ZeroRedundancyOptimizer detected that the trainable parameters changed; rebuilding"
                " the parameter buckets if enabled"
            )
            self._is_trainable_mask = trainable
        self._sync_param_groups(self.param_groups, self.optim.param_groups)
        arguments = kwargs if closure is None else {"closure": closure, **kwargs}
        loss = self.optim.step(**arguments)
        self._sync_param_groups(self.optim.param_groups, self.param_groups)
        for rank, groups in enumerate(self._partition_parameters()):
            for param in (p for group in groups for p in group["params"]):
                dist.broadcast(param.detach(), group=self.process_group, group_src=rank)
        return loss

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Send every rank's state to one, where state_dict() then gives all; all ranks call it."""
        self._sync_param_groups(self.param_groups, self.optim.param_groups)
        self._all_state_dicts = []
        for rank in range(self.world_size):
            state = [self.optim.state_dict() if rank == self.rank else None]
            if rank != to:
                source = dist.get_global_rank(self.process_group, rank)
                dist.broadcast_object_list(state, source, self.process_group)
            if self.rank == to:
                copied = tree_map_only(mindtorch.Tensor, lambda t: t.cpu(), state[0])
                self._all_state_dicts.append(copied)

    def state_dict(self) -> dict[str, Any]:
        """The state of all, as of the last consolidate_state_dict; RuntimeError before it."""
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call"
                f" `consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to"
                " save the global state."
            )
        whole = super().state_dict()
        place = {id(p): at for at, p in enumerate(self._in_order())}
        for local, groups in zip(self._all_state_dicts, self._partition_parameters(), strict=True):
            for mine, group in zip(local["param_groups"], groups, strict=True):
                for at, param in zip(mine["params"], group["params"], strict=True):
                    if at in local["state"]:
                        whole["state"][place[id(param)]] = local["state"][at]
        whole["state"] = dict(sorted(whole["state"].items()))
        return whole

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take this process's part of a state of all."""
        mine = {id(p) for g in self._partition_parameters()[self.rank] for p in g["params"]}
        params = self._in_order()
        for at, value in state_dict["state"].items():
            param = params[at]
            if id(param) not in mine:
                state_dict["state"][at] = None
                continue
            self.optim.state[param] = {
                name: v.to(param.device) if isinstance(v, mindtorch.Tensor) and v.dim() else v
                for name, v in value.items()
            }
        super().load_state_dict(state_dict)
        self._sync_param_groups(state_dict["param_groups"], self.param_groups)
        self._sync_param_groups(self.param_groups, self.optim.param_groups)

    def join_hook(self, **_kwargs: Any) -> JoinHook:
        """Steps of the others, shadowed."""
        return _ZeROJoinHook(self)

    @property
    def join_device(self) -> mindtorch.device:
        """That of the first parameter."""
        return self._default_device

    @property
    def join_process_group(self) -> Any:
        """The group over which parameters are spread."""
        return self.process_group

    def _in_order(self) -> list[mindtorch.Tensor]:
        """The parameters by their places in the state of all."""
        return [p for group in self.param_groups for p in group["params"]]

    @staticmethod
    def _sync_param_groups(source: Groups, target: Groups) -> None:
        if len(source) != len(target):
            raise AssertionError(
                "Mismatch between number of source and destination parameter groups"
            )
        for theirs, mine in zip(source, target, strict=True):
            mine.update({key: value for key, value in theirs.items() if key != "params"})

    def _verify_and_init_params(self, params: Any) -> list[Any]:
        """The parameters or groups as a list."""
        if isinstance(params, mindtorch.Tensor):
            raise TypeError(
                f"`params` argument should be an iterable of Tensors, but got {typename(params)}"
            )
        try:
            listed = list(params)
        except TypeError as error:
            raise TypeError(
                "`params` argument should be an iterable of Tensors or dicts, but got"
                f" {typename(params)}"
            ) from error
        if not listed:
            raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
        if all(isinstance(p, mindtorch.Tensor) for p in listed):
            self._all_params = listed
        elif all(isinstance(p, dict) for p in listed):
            if any("params" not in group for group in listed):
                raise ValueError(
                    "Each parameter group passed-in via `params` must have a 'params' key mapping"
                    " to the parameters in the group"
                )
            self._all_params = [p for group in listed for p in group["params"]]
        else:
            raise TypeError("`params` argument should be an iterable of Tensors or dicts")
        return listed

    def _verify_same_dense_param_type(self) -> None:
        names = [typename(p) for p in self._all_params]
        rule = "ZeroRedundancyOptimizer only supports using the same dense type for all parameters"
        if self._all_params[0].is_sparse:
            raise ValueError(f"{rule} but got {names[0]}")
        odd = next((name for name in names if name != names[0]), None)
        if odd is not None:
            raise ValueError(f"{rule} but got both {names[0]} and {odd}")
