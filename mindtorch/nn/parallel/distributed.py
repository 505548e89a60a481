"""Owns DistributedDataParallel: every process trains on its share, gradients are averaged.

Gradients travel in buckets, in the reverse order of parameters, each as soon as it is complete; all
ranks send them in the same order.
"""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import mindtorch

from ..._tensor.device import device as Device
from ..._tensor.tensor import Tensor
from ..modules.module import Module
from ..parameter import UninitializedParameter
from . import _buckets

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A module whose gradients are the average of all ranks' after each backward.

    Parameters and buffers start as those of rank 0 of the group, without `init_sync` as they are.
    With `gradient_as_bucket_view` gradients are views of their bucket. RuntimeError for a module
    without parameters that need gradients, and where parameters got none
    (`find_unused_parameters=True` allows that).
    """

    require_backward_grad_sync: bool

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0,
        broadcast_buffers: bool | None = None, init_sync: bool = True, process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False, check_reduction: bool = False,
        gradient_as_bucket_view: bool = False, static_graph: bool = False,
        forward_sync_buffers: bool | None = None, **_: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        parameters: list[Tensor] = [p for _, p in self._kept(module.named_parameters())]
        learned = [p for p in parameters if p.requires_grad]
        if not learned:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter "
                "that requires a gradient."
            )
        if any(isinstance(p, UninitializedParameter) for p in parameters):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DistributedDataParallel`"
                ". Run a dummy forward pass to correctly initialize the modules"
            )
        devices = {p.device for p in parameters}
        _check_devices(devices, device_ids, output_device)
        _warn_of_options(broadcast_buffers, forward_sync_buffers, check_reduction)
        if find_unused_parameters and static_graph:
            warnings.warn(
                "You passed find_unused_parameters=true to DistributedDataParallel, "
                "`_set_static_graph` will detect unused parameters automatically, so you do not "
                "need to set find_unused_parameters=true, just be sure these unused parameters "
                "will not change during training loop while calling `_set_static_graph`.",
                stacklevel=2,
            )
        self.module = module
        self.dim, self.output_device = dim, output_device
        self.device = parameters[0].device
        self._cap = bucket_cap_mb
        self.bucket_bytes_cap = _buckets.limits(bucket_cap_mb, True)[-1]
        self.gradient_as_bucket_view, self.static_graph = gradient_as_bucket_view, static_graph
        self.process_group = process_group
        self.device_ids = device_ids
        is_apart = forward_sync_buffers is None and broadcast_buffers is False
        self.forward_sync_buffers = (
            not is_apart if forward_sync_buffers is None else forward_sync_buffers
        )
        self.find_unused_parameters = find_unused_parameters
        self.require_backward_grad_sync = True
        self._hook: tuple[Any, Callable[[Any, Any], Any]] | None = None
        self._join_config: Any = None
        self._divide_by_initial_world_size, self._active = True, 0
        if init_sync:
            self._agree(parameters, () if is_apart else self._buffers_here(module))
        self._learned = learned
        self._place = {id(p): i for i, p in enumerate(learned)}
        rebuilds = static_graph or not find_unused_parameters
        self._use(_buckets.before_gradients(learned, _buckets.limits(bucket_cap_mb, not rebuilds)))
        # After which iteration buckets follow the order of gradients; never where parameters vary.
        self._rebuild_after = (2 if static_graph else 1) if rebuilds else None
        self._has_rebuilt_buckets = False
        self._iteration, self._order = 0, list[int]()
        self._waiting: list[set[int]] = []
        self._next = len(self._buckets)
        self._begun = False  # whether gradients arrived since the last forward
        for parameter in learned:
            parameter.register_post_accumulate_grad_hook(self._arrived)

    def _use(self, buckets: list[list[Tensor]]) -> None:
        self._buckets = buckets
        self._bucket_of = {id(p): i for i, bucket in enumerate(buckets) for p in bucket}

    def _rebuild(self) -> None:
        """Group parameters in the order in which rank 0's gradients arrived, once."""
        if self._iteration != self._rebuild_after or len(self._order) < len(self._learned):
            return
        import mindtorch.distributed as dist

        order = [self._order]
        dist.broadcast_object_list(order, group=self.process_group, group_src=0)
        arrived = [self._learned[i] for i in order[0]]
        self._use(_buckets.assigned(arrived, _buckets.limits(self._cap, True)))
        self._next, self._rebuild_after, self._has_rebuilt_buckets = len(self._buckets), None, True

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        return _buckets.logging_data(self, self._order)

    @property
    def broadcast_buffers(self) -> bool:
        """Whether a forward takes rank 0's buffers: `forward_sync_buffers` under its old name."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, names: Iterable[str]) -> None:
        """Leave parameters and buffers, by their names in `module`, to each rank alone."""
        module.__dict__["_ddp_params_and_buffers_to_ignore"] = names
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            if name in names:
                tensor.__dict__["_ddp_ignored"] = True

    def _kept(self, named: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
        return [(name, t) for name, t in named if name not in self.parameters_to_ignore]

    def _buffers_here(self, module: Module) -> list[Tensor]:
        return [t for _, t in self._kept(module.named_buffers())]

    def _agree(self, parameters: list[Tensor], buffers: Iterable[Tensor]) -> None:
        """Take rank 0's parameters and buffers; refuses ranks with other shapes."""
        import mindtorch.distributed as dist

        shapes = [(i, tuple(p.shape), str(p.dtype)) for i, p in enumerate(parameters)]
        layouts: list[Any] = [None] * dist.get_world_size(self.process_group)
        dist.all_gather_object(layouts, shapes, self.process_group)
        for rank, theirs in enumerate(layouts):
            if theirs != shapes:
                odd = next((a, b) for a, b in zip([*shapes, None], [*theirs, None], strict=False)
                           if a != b)  # fmt: skip
                local = dist.get_rank(self.process_group)
                raise RuntimeError(
                    f"DistributedDataParallel: rank {local} has parameter {odd[0]}, rank {rank}"
                    f" has {odd[1]}"
                )
        self._share((*parameters, *buffers), 0)

    def _share(self, tensors: Iterable[Tensor], rank: int) -> None:
        """Take the values of one rank."""
        import mindtorch.distributed as dist

        for tensor in tensors:
            dist.broadcast(tensor.detach(), group=self.process_group, group_src=rank)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        training = mindtorch.is_grad_enabled() and self.require_backward_grad_sync
        self._active = 0
        joining = self._join_config is not None and self._join_config.enable
        if joining:
            from mindtorch.distributed.algorithms.join import Join

            work = Join.notify_join_context(cast("Any", self))
            if work is not None and not self._divide_by_initial_world_size:
                self._active = int(work.get_future().wait()[0])
            self._total(float(training))
        if training:
            self._require_finished()
            self._rebuild()
            self._share_buffers(joining)
        output = self.module(*inputs, **kwargs)
        if training:
            self._begin(output)
        return output

    def _share_buffers(self, joining: bool, has_inputs: bool = True) -> None:
        """Take the buffers of rank 0, or of the last rank that still has inputs."""
        if self.forward_sync_buffers and self.module.training:
            buffers = self._buffers_here(self.module)
            self._share(buffers, self._last(has_inputs) if joining and buffers else 0)

    def _total(self, value: float) -> float:
        import mindtorch.distributed as dist

        sum = mindtorch.tensor([value], device=self.device)
        dist.all_reduce(sum, group=self.process_group)
        return sum.item()

    def _last(self, flag: bool) -> int:
        """The last of the ranks that say True."""
        import mindtorch.distributed as dist

        rank = float(dist.get_rank(self.process_group)) if flag else -1.0
        last = mindtorch.tensor([rank], device=self.device)
        dist.all_reduce(last, dist.ReduceOp.MAX, self.process_group)
        return int(last)

    def _shadow(self) -> None:
        """Take part in another rank's iteration, without inputs: its gradients count as zeros."""
        if not self._total(0.0):
            return
        self._rebuild()
        self._share_buffers(True, has_inputs=False)
        self._iteration += 1
        self._order = [self._place[id(p)] for bucket in self._buckets for p in bucket]
        for place, bucket in enumerate(self._buckets):
            self._next = place
            gradients = [p.grad for p in bucket]
            for p in bucket:
                p.grad = None
            self._average(bucket)
            for p, gradient in zip(bucket, gradients, strict=True):
                p.grad = gradient
        self._next = len(self._buckets)

    def _share_last(self, is_last_joiner: bool) -> None:
        """Take parameters and buffers of the last rank that had inputs."""
        named = (*self.module.named_parameters(), *self.module.named_buffers())
        self._share([t for _, t in self._kept(named)], self._last(is_last_joiner))

    def join_hook(self, divide_by_initial_world_size: bool = True, **_: Any) -> Any:
        """What Join does for this module after the inputs have ended: iterations of others."""
        from mindtorch.distributed.algorithms.join import JoinHook

        self._divide_by_initial_world_size = divide_by_initial_world_size
        hook: Any = JoinHook()
        hook.main_hook, hook.post_hook = self._shadow, self._share_last
        return hook

    @property
    def join_device(self) -> Device:
        """The device of the parameters."""
        return self._learned[0].device

    @property
    def join_process_group(self) -> Any:
        """The group whose gradients are averaged."""
        import mindtorch.distributed as dist

        return dist.group.WORLD if self.process_group is None else self.process_group

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Any:  # fmt: skip
        """A Join of this module alone."""
        from mindtorch.distributed.algorithms.join import Join

        return Join(
            [cast("Any", self)],
            enable, throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )  # fmt: skip

    def _require_finished(self) -> None:
        if self._next < len(self._buckets) and self._begun:
            left = {number for numbers in self._waiting for number in numbers}
            self._next = len(self._buckets)
            raise RuntimeError(self._unfinished(left))

    def _unfinished(self, left: set[int]) -> str:
        """torch's text for parameters that got no gradient; `left` are their ids."""
        import mindtorch.distributed as dist

        indices = (str(i) for i, p in enumerate(self._learned) if id(p) in left)
        remedy = (
            "Since `find_unused_parameters=True` is enabled, this likely  means that not all "
            "`forward` outputs participate in computing loss. You can fix this by "
            if self.find_unused_parameters
            else "You can enable unused parameter detection by passing the keyword argument "
            "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by "
        )
        return (
            "Expected to have finished reduction in the prior iteration before starting a new one. "
            "This error indicates that your module has parameters that were not used in producing "
            f"loss. {remedy}\nmaking sure all `forward` function outputs participate in calculating"
            " loss. \nIf you already have done the above, then the distributed data parallel module"
            " wasn't able to locate the output tensors in the return value of your module's "
            "`forward` function. Please include the loss function and the structure of the return "
            "value of `forward` of your module when reporting this issue (e.g. list, dict, "
            "iterable).\nParameter indices which did not receive grad for rank "
            f"{dist.get_rank(self.process_group)}: {' '.join(indices)}\n In addition, you can set "
            "the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL to print out"
            " information about which particular parameters did not receive gradient on this rank "
            "as part of this error"
        )

    def _begin(self, output: Any) -> None:
        """Wait for the gradient of every parameter; those that take no part get zeros."""
        self._waiting = [{id(p) for p in bucket} for bucket in self._buckets]
        self._next, self._begun = 0, False
        self._iteration += 1
        self._order.clear()
        if not (self.find_unused_parameters or self.static_graph):
            return
        used = _reached(output)
        for bucket in self._buckets:
            for parameter in bucket:
                if id(parameter) not in used:
                    self._waiting[self._bucket_of[id(parameter)]].discard(id(parameter))

    def _arrived(self, parameter: Tensor) -> None:
        """A gradient is complete: send its bucket, and those that wait behind it."""
        if self._next >= len(self._buckets) or not self.require_backward_grad_sync:
            return
        self._begun = True
        self._order.append(self._place[id(parameter)])
        self._waiting[self._bucket_of[id(parameter)]].discard(id(parameter))
        while self._next < len(self._buckets) and not self._waiting[self._next]:
            self._average(self._buckets[self._next])
            self._next += 1

    def register_comm_hook(self, state: Any, hook: Callable[[Any, Any], Any]) -> None:
        """Let `hook(state, bucket)` send gradients: it gives a Future of the new ones [n].

        TypeError for what cannot be called, ValueError for annotations of other classes,
        RuntimeError the second time.
        """
        import mindtorch.distributed as dist
        from mindtorch.futures import Future

        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        signature = inspect.signature(hook)
        names, result = list(signature.parameters.values()), signature.return_annotation
        if names[1].annotation not in (inspect.Parameter.empty, dist.GradBucket):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        if result not in (inspect.Signature.empty, Future[Tensor]):
            raise ValueError(
                "Communication hook: return annotation should be"
                " torch.futures.Future[torch.Tensor]."
            )
        if hook.__name__ in ("bf16_compress_hook", "bf16_compress_wrapper_hook"):
            raise TypeError(
                "BF16 all reduce communication hook required CUDA 11+ and NCCL 2.10+ or XPU and"
                " XCCL"
            )
        if self._hook is not None:
            raise RuntimeError(
                "register_comm_hook or register_builtin_comm_hook can only be called once."
            )
        self._hook = state, hook

    def _sent(self, flat: Tensor, bucket: list[Tensor]) -> Tensor:
        """The gradients of all ranks, of a bucket's."""
        import mindtorch.distributed as dist

        if self._hook is not None:
            state, hook = self._hook
            result = hook(state, dist.GradBucket(self._next, len(self._buckets), bucket, flat))
            value = result.wait()
            return value[0] if isinstance(value, list) else value
        dist.all_reduce(flat, group=self.process_group)
        return flat.div_(self._active or dist.get_world_size(self.process_group))

    def _average(self, bucket: list[Tensor]) -> None:

        with mindtorch.no_grad():
            unused = self._unused(bucket)
            for parameter in bucket:
                if parameter.grad is None:
                    parameter.grad = mindtorch.zeros_like(parameter)
            flat = mindtorch.cat([p.grad.reshape(-1) for p in bucket])
            flat = self._sent(flat, bucket)
            start = 0
            for parameter in bucket:
                end = start + parameter.numel()
                averaged = flat[start:end].view(parameter.grad.shape)
                if self.gradient_as_bucket_view:
                    parameter.grad = averaged
                else:
                    parameter.grad.copy_(averaged)
                start = end
            for parameter in unused:
                parameter.grad = None

    def _unused(self, bucket: list[Tensor]) -> list[Tensor]:
        """Parameters that took part on no rank: their gradients stay None, as in torch."""
        import mindtorch.distributed as dist

        if not (self.find_unused_parameters or self.static_graph):
            return []
        flags = [float(p.grad is not None) for p in bucket]
        ranks = mindtorch.tensor(flags, device=bucket[0].device)
        dist.all_reduce(ranks, group=self.process_group)
        return [p for p, count in zip(bucket, ranks.tolist(), strict=True) if not count]

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients add up on each rank and are not sent."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before


def _check_devices(devices: set[Device], device_ids: Any, output_device: Any) -> None:
    """ValueError in torch's words for devices named beside parameters on the CPU, or several."""
    if device_ids is not None and len(device_ids) > 1:
        raise ValueError("device_ids can only be None or contain a single element.")
    if (device_ids or output_device) and devices == {Device("cpu")}:
        raise ValueError(
            "DistributedDataParallel device_ids and output_device arguments only work with "
            "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
            f"{device_ids}, output_device {output_device}, and module parameters {devices}."
        )


def _warn_of_options(broadcast: bool | None, forward: bool | None, check: bool) -> None:
    """torch's warnings of options that have other names, or do nothing."""
    text = "The `check_reduction` argument in `DistributedDataParallel` module is deprecated."
    texts = [text + " Please avoid using it."] if check else []
    if broadcast is not None and forward is not None:
        texts[:0] = [
            "Both `broadcast_buffers` and `forward_sync_buffers` were specified. "
            "`broadcast_buffers` is deprecated and its value is ignored when "
            "`forward_sync_buffers` is provided."
        ]
    elif broadcast is not None:
        texts[:0] = [
            "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead. IMPORTANT: "
            "unlike `broadcast_buffers=False`, `forward_sync_buffers=False` still syncs buffers at "
            "init. If you rely on buffers NOT being synced at init (e.g. rank-local buffers), keep "
            "using `broadcast_buffers=False` until `init_sync_buffers` is available."
        ]
    for text in texts:
        warnings.warn(text, FutureWarning, stacklevel=3)


def _reached(output: Any) -> set[int]:
    """Ids of the leaves that a module's output depends on."""
    nodes = [t.grad_fn for t in _tensors(output) if t.grad_fn is not None]
    seen, leaves = set(), set()
    while nodes:
        node = nodes.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        variable = getattr(node, "variable", None)
        if variable is not None:
            leaves.add(id(variable))
        nodes += [above for above, _ in node.next_functions if above is not None]
    return leaves


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
