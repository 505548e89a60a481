"""Owns hooks that send gradients as bytes, each rank's with its own scale and zero point."""

import importlib
from collections.abc import Callable
from typing import Any

import mindtorch
import mindtorch.distributed as dist
from mindtorch._tensor.tensor import Tensor
from mindtorch.futures import Future

__all__ = ["quantization_perchannel_hook", "quantization_pertensor_hook"]


def _everywhere(tensor: Tensor, group: dist.ProcessGroup) -> Future[Any]:
    """Every rank's tensor, when they are here."""
    parts = [mindtorch.zeros_like(tensor) for _ in range(group.size())]
    work = dist.all_gather(parts, tensor, group=group, async_op=True)
    assert work is not None
    return work.get_future()


def _mean_of_bytes(
    rows: Tensor,
    count: int,
    scales: Tensor,
    group: dist.ProcessGroup,
    row: Callable[[Tensor, int], Any],
) -> Future[Tensor]:
    """The mean of the first `count` elements of all ranks' `rows`, that travel as uint8.

    `row(parts, rank)` is what of the gathered `scales` is a rank's: (scale, zero point).
    """
    gathered: list[Any] = []

    def quantised(future: Future[Any]) -> Any:
        gathered.append(future.wait()[0])
        scale, zero = row(gathered[0], group.rank())
        codes = mindtorch.clamp(mindtorch.round(rows / scale) + zero, 0, 255).to(mindtorch.uint8)
        return _everywhere(codes, group).wait()

    def mean(future: Future[Any]) -> Tensor:
        total = mindtorch.zeros_like(rows, dtype=mindtorch.float32)
        for rank, codes in enumerate(future.wait()[0]):
            scale, zero = row(gathered[0], rank)
            total += scale * (codes.to(mindtorch.float32) - zero)
        return total.flatten()[:count] / group.size()

    return _everywhere(scales, group).then(quantised).then(mean)


def _observer(name: str) -> Any:
    return getattr(importlib.import_module("mindtorch.ao.quantization"), name)()


def _of_all(group: dist.ProcessGroup | None) -> dist.ProcessGroup:
    group = dist.group.WORLD if group is None else group
    assert group is not None
    return group


def quantization_pertensor_hook(
    process_group: dist.ProcessGroup | None, bucket: dist.GradBucket
) -> Future[Tensor]:
    """The mean of all ranks' gradients; one scale for a bucket."""
    tensor = bucket.buffer()
    observer = _observer("MinMaxObserver").to(tensor.device)
    observer(tensor)
    scale, zero = observer.calculate_qparams()
    both = mindtorch.tensor([float(scale), float(zero)], device=tensor.device)
    return _mean_of_bytes(
        tensor, len(tensor), both, _of_all(process_group),
        lambda parts, rank: (parts[rank][0], parts[rank][1]),
    )  # fmt: skip


def quantization_perchannel_hook(
    process_group: dist.ProcessGroup | None, bucket: dist.GradBucket, bucket_size: int = 512
) -> Future[Tensor]:
    """The mean of all ranks' gradients; one scale for `bucket_size` elements each."""
    tensor = bucket.buffer()
    count = tensor.shape[0]
    rows = mindtorch.nn.functional.pad(tensor, (0, bucket_size - count % bucket_size))
    rows = rows.view(-1, bucket_size)
    observer = _observer("PerChannelMinMaxObserver").to(tensor.device)
    observer(rows)
    both = mindtorch.stack(observer.calculate_qparams())

    def row(parts: Any, rank: int) -> Any:
        part = parts[rank] if isinstance(parts, list) else parts[rank, :, :]
        return part[0][:, None], part[1][:, None]

    return _mean_of_bytes(rows, count, both, _of_all(process_group), row)
