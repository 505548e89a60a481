"""Owns hooks that average gradients, some in half precision on the way."""

from collections.abc import Callable

import mindtorch
import mindtorch.distributed as dist
from mindtorch._tensor.dtype import dtype as Dtype
from mindtorch._tensor.tensor import Tensor
from mindtorch.futures import Future

__all__ = ["allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook",
           "fp16_compress_wrapper"]  # fmt: skip

Hook = Callable[[object, dist.GradBucket], Future[Tensor]]


def _allreduce_fut(group: dist.ProcessGroup | None, tensor: Tensor) -> Future[Tensor]:
    group = dist.group.WORLD if group is None else group
    work = dist.all_reduce(tensor.div_(dist.get_world_size(group)), group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda future: future.value()[0])


def allreduce_hook(
    process_group: dist.ProcessGroup | None, bucket: dist.GradBucket
) -> Future[Tensor]:
    """The mean of all ranks' gradients."""
    return _allreduce_fut(process_group, bucket.buffer())


def _compressed(
    group: dist.ProcessGroup | None, bucket: dist.GradBucket, dtype: Dtype
) -> Future[Tensor]:
    buffer = bucket.buffer()
    return _allreduce_fut(group, buffer.to(dtype)).then(lambda future: buffer.copy_(future.value()))


def fp16_compress_hook(
    process_group: dist.ProcessGroup | None, bucket: dist.GradBucket
) -> Future[Tensor]:
    """The mean of all ranks' gradients, as float16 on the way."""
    return _compressed(process_group, bucket, mindtorch.float16)


def bf16_compress_hook(
    process_group: dist.ProcessGroup | None, bucket: dist.GradBucket
) -> Future[Tensor]:
    """The mean of all ranks' gradients, as bfloat16 on the way."""
    return _compressed(process_group, bucket, mindtorch.bfloat16)


def _wrapped(hook: Hook, dtype: Dtype, state: object, bucket: dist.GradBucket) -> Future[Tensor]:
    buffer = bucket.buffer()
    bucket.set_buffer(buffer.to(dtype))
    return hook(state, bucket).then(lambda future: buffer.copy_(future.value()))


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """`hook` on float16 gradients, whose result is float32 again."""

    def fp16_compress_wrapper_hook(state: object, bucket: dist.GradBucket) -> Future[Tensor]:
        return _wrapped(hook, mindtorch.float16, state, bucket)

    return fp16_compress_wrapper_hook


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """`hook` on bfloat16 gradients, whose result is float32 again."""

    def bf16_compress_wrapper_hook(state: object, bucket: dist.GradBucket) -> Future[Tensor]:
        return _wrapped(hook, mindtorch.bfloat16, state, bucket)

    return bf16_compress_wrapper_hook
