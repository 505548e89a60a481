"""Owns torch.nn.parallel's wrappers for one device; replicas on several are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .modules.module import Module


class DataParallel(Module):
    """Calls `module`, whose parameters it names `module.*`, as torch does where one device is.

    NotImplementedError for more than one of `device_ids` (torch.nn.DataParallel).
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise NotImplementedError(
                f"DataParallel: got device_ids {list(device_ids)}, expected one; replicas on"
                " several devices are not supported, give device_ids=[0] or none"
            )
        self.dim = dim
        self.device_ids = list(device_ids or [])
        self.output_device = output_device
        self.module = module

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """`module(*inputs)` on one device; NotImplementedError for more."""
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    wrapped = DataParallel(module, device_ids, output_device, dim)
    return wrapped(*given, **(module_kwargs or {}))


class DistributedDataParallel(Module):
    """Refused when made: there are no process groups. isinstance is always false."""

    def __init__(self, module: Module, *_: Any, **__: Any) -> None:
        raise NotImplementedError(
            f"DistributedDataParallel: wrapping {type(module).__name__} needs a process group,"
            " which is not supported; use the module itself"
        )
