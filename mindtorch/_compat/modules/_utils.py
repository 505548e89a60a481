"""Owns torch._utils' names: what files of tensors call, and small questions of libraries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from mindtorch._tensor.device import device as Device
from mindtorch._tensor.dtype import dtype as Dtype
from mindtorch._tensor.tensor import Tensor
from mindtorch.nn.parameter import Parameter
from mindtorch.ops.spec import aten

__all__ = ["_get_device_index", "_rebuild_parameter", "_rebuild_tensor_v2"]


def _element_size(dtype: Dtype) -> int:
    """Bytes of an element."""
    return dtype.itemsize


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device; ValueError where it has none and `optional` is false."""
    if isinstance(device, int):
        return device
    parsed = Device(device) if isinstance(device, str) else device
    index = getattr(parsed, "index", None)
    if index is None and not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer: {device}")
    return -1 if index is None else index


def _rebuild_tensor_v2(
    storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool = False,
    backward_hooks: Any = None, metadata: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor over a storage."""
    tensor: Any = aten.empty((0,), dtype=storage.dtype)
    tensor.set_(storage, offset, tuple(size), tuple(stride))
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    """A Parameter over a tensor."""
    return Parameter(data, requires_grad)


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """All elements in one dimension."""
    from mindtorch._functional.publish import function

    return function("cat")([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Views of `flat` in the shapes of `tensors`."""
    views, at = [], 0
    for tensor in tensors:
        views.append(flat.narrow(0, at, tensor.numel()).view_as(tensor))
        at += tensor.numel()
    return tuple(views)


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Groups of tensors of one dtype, each of at most `size_limit` bytes where that is possible."""
    groups: dict[Any, list[Tensor]] = OrderedDict()
    for tensor in tensors:
        group = groups.setdefault(tensor.dtype, [])
        if group and sum(t.nbytes for t in group) + tensor.nbytes > size_limit:
            yield list(group)
            group.clear()
        group.append(tensor)
    yield from (group for group in groups.values() if group)


def _get_all_device_indices() -> list[int]:
    """The indices of all npus."""
    from mindtorch.npu import device_count

    return list(range(device_count()))


def _get_available_device_type() -> str | None:
    """npu where there is one."""
    from mindtorch.npu import is_available

    return "npu" if is_available() else None


def _get_device_module(device_type: str) -> Any:
    """The module of a kind of device: `torch.npu`."""
    import mindtorch

    module = getattr(mindtorch, device_type, None)
    if module is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as"
            f" 'torch.{device_type}'."
        )
    return module
