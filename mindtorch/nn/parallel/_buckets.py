"""Owns how DistributedDataParallel groups gradients, and what it tells of itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Final

from ..._tensor.tensor import Tensor

MIB: Final = 1 << 20


def _nbytes(parameter: Tensor) -> int:
    return parameter.numel() * parameter.element_size()


def limits(cap: float | None, first: bool) -> list[int]:
    """Bytes at which a bucket is full: of the first, and of those behind it.

    `cap` is in MiB, None for torch's 25, where the first is of 1 MiB; without `first`, no bucket
    ends before its parameters do.
    """
    if not first:
        return [sys.maxsize]
    return [MIB, 25 * MIB] if cap is None else [int(cap * MIB)]


def assigned(parameters: Sequence[Tensor], most: Sequence[int]) -> list[list[Tensor]]:
    """Buckets of one dtype and device each, closed by the parameter that reaches the limit."""
    done: list[list[Tensor]] = []
    opened: dict[Any, list[Tensor]] = {}
    closed: dict[Any, int] = {}
    for parameter in parameters:
        kind = parameter.dtype, parameter.device
        bucket = opened.setdefault(kind, [])
        bucket.append(parameter)
        limit = most[min(closed.get(kind, 0), len(most) - 1)]
        if sum(map(_nbytes, bucket)) >= limit:
            done.append(opened.pop(kind))
            closed[kind] = closed.get(kind, 0) + 1
    return done + list(opened.values())


def before_gradients(parameters: Sequence[Tensor], most: Sequence[int]) -> list[list[Tensor]]:
    """Buckets in the order in which their gradients are awaited: the last parameters first."""
    place = {id(p): i for i, p in enumerate(parameters)}
    return sorted(assigned(parameters, most), key=lambda bucket: -place[id(bucket[0])])


_NAMES = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
}  # fmt: skip
_SETTINGS = (
    "CUDA_VISIBLE_DEVICES", "GLOO_DEVICE_TRANSPORT", "GLOO_SOCKET_IFNAME", "MASTER_ADDR",
    "MASTER_PORT", "TORCH_DISTRIBUTED_DEBUG",
)  # fmt: skip


def logging_data(wrapper: Any, order: Sequence[int]) -> dict[str, Any]:
    """What `_get_ddp_logging_data` says of a DistributedDataParallel; `order` has the places of
    parameters by the arrival of their gradients."""
    import mindtorch.distributed as dist

    learned, group, hook = wrapper._learned, wrapper.process_group, wrapper._hook
    texts = {
        "backend_name": dist.get_backend(group),
        "bucket_sizes": ", ".join(str(sum(map(_nbytes, b))) for b in wrapper._buckets),
        "device_ids": ", ".join(str(i) for i in wrapper.device_ids or ()),
        "dtypes": ", ".join(sorted({_NAMES.get(n := str(p.dtype)[6:], n) for p in learned})),
        "module_name": type(wrapper.module).__name__,
        "prev_iteration_grad_ready_order_indices": ", ".join(map(str, order)),
        **{name.lower(): os.environ.get(name, "N/A") for name in _SETTINGS},
    }
    if hook is not None:
        texts["comm_hook"] = hook[1].__qualname__
    numbers = {
        "bucket_cap_bytes": wrapper.bucket_bytes_cap,
        "iteration": max(wrapper._iteration - 1, 0),
        "is_multi_device_module": len({p.device for p in learned}) > 1,
        "num_buckets_reduced": len(wrapper._buckets),
        "num_parameter_tensors": len(learned),
        "output_device": -1 if wrapper.output_device is None else wrapper.output_device,
        "rank": dist.get_rank(group),
        "total_parameter_size_bytes": sum(map(_nbytes, learned)),
        "world_size": dist.get_world_size(group),
        **{name: getattr(wrapper, name) for name in (
            "broadcast_buffers", "find_unused_parameters", "gradient_as_bucket_view",
            "static_graph",
        )},
    }  # fmt: skip
    return dict(sorted(texts.items())) | {name: int(numbers[name]) for name in sorted(numbers)}
