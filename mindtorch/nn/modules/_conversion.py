"""Owns moving and casting a module tree: to, float, cpu, npu,
apply to every tensor; keeps identities."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import mindtorch

from ..._functional.conversion import refusal_of_to
from ..._tensor.device import device as Device
from ..._tensor.dtype import dtype as Dtype, of_python
from ..._tensor.tensor import Tensor
from ..._tensor.types import Self
from ..parameter import Parameter

TensorFn = Callable[[Any], Any]

# What torch.__future__ sets: how a module takes converted parameters.
ON_CONVERSION = {"swap": False, "overwrite": False}


class Conversion:
    """The part of Module that changes the device or dtype of every tensor it holds, in place."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    children: Callable[[], Any]

    def _apply(self, fn: TensorFn, recurse: bool = True) -> Self:
        if recurse:
            for child in self.children():
                child._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            # Optimizers hold the Parameter objects, so each keeps its identity and gets new data.
            with mindtorch.no_grad():
                grad = parameter.grad
                parameter.grad = None
                target = self._converted(name, parameter, fn(parameter))
                if grad is not None:
                    target.grad = fn(grad).requires_grad_(grad.requires_grad)
                    if target is not parameter:
                        parameter.grad = grad
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _converted(self, name: str, parameter: Parameter, new: Tensor) -> Parameter:
        """The parameter with new contents, or a new one where that is asked for."""
        # What a wrapper holds moves with it.
        swap = ON_CONVERSION["swap"] or hasattr(type(new), "__torch_dispatch__")
        unlike = hasattr(type(parameter), "__torch_dispatch__") or new.is_meta != parameter.is_meta
        if not (swap or unlike or ON_CONVERSION["overwrite"]):
            parameter.data = new
            return parameter
        fresh = Parameter(new, requires_grad=parameter.requires_grad)
        if swap:
            mindtorch.utils.swap_tensors(parameter, fresh)
            return parameter
        self._parameters[name] = fresh
        return fresh

    def apply(self, fn: Callable[[Any], Any]) -> Self:
        """Calls `fn(module)` on every module, children first."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves to a device and/or floating dtype, in place: to(device), to(dtype), to(tensor)."""
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, "
                f"but got desired dtype={dtype}"
            )

        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may"
                " change, and some modules might not work as expected when using complex tensors as"
                " parameters or buffers. Please file an issue at"
                " https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a"
                " complex module does not work as expected.",
                stacklevel=2,
            )

        def convert(tensor: Tensor) -> Tensor:
            casts = tensor.is_floating_point() or tensor.is_complex()
            more = {}
            if memory_format is not None and tensor.dim() in (4, 5):
                more["memory_format"] = memory_format
            try:
                return tensor.to(device, dtype if casts else None, non_blocking, **more)
            except NotImplementedError as error:
                if not tensor.is_meta:
                    raise
                raise NotImplementedError(
                    f"{error} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to()"
                    " when moving module from meta to a different device."
                ) from None

        return self._apply(convert)

    def to_empty(self, *, device: Device | str | int | None, recurse: bool = True) -> Self:
        """Moves to `device` without copying the values."""
        return self._apply(lambda t: mindtorch.empty_like(t, device=device), recurse=recurse)

    def type(self, dst_type: Any) -> Self:
        """Casts every parameter and buffer to `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def _cast(self, dtype: Dtype) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Self:
        """Casts floating parameters and buffers to float32."""
        return self._cast(mindtorch.float32)

    def double(self) -> Self:
        """Casts floating parameters and buffers to float64."""
        return self._cast(mindtorch.float64)

    def half(self) -> Self:
        """Casts floating parameters and buffers to float16."""
        return self._cast(mindtorch.float16)

    def bfloat16(self) -> Self:
        """Casts floating parameters and buffers to bfloat16."""
        return self._cast(mindtorch.bfloat16)

    def cpu(self) -> Self:
        """Moves to the CPU."""
        return self._apply(lambda t: t.cpu())

    def npu(self, device: Device | str | int | None = None) -> Self:
        """Moves to an NPU: an index, a device, or the current one."""
        return self._apply(lambda t: t.to(_indexed("npu", device)))

    def cuda(self, device: Device | str | int | None = None) -> Self:
        """Moves to a CUDA device; this library has none, so the core's error says so."""
        return self._apply(lambda t: t.cuda(device))

    def ipu(self, device: Device | str | int | None = None) -> Self:
        """Refused, as by a torch without IPU; what has no tensors is given back."""
        return self._apply(lambda t: t.ipu(device))

    def mtia(self, device: Device | str | int | None = None) -> Self:
        """Refused, as by a torch without MTIA; what has no tensors is given back."""
        return self._apply(lambda t: t.mtia(device))

    def xpu(self, device: Device | str | int | None = None) -> Self:
        """Refused, as by a torch without XPU; what has no tensors is given back."""
        return self._apply(lambda t: t.xpu(device))

    def share_memory(self) -> Self:
        """Moves tensors to shared memory where the core offers it."""
        return self._apply(lambda t: t.share_memory_())


def _indexed(kind: str, device: Device | str | int | None) -> Any:
    return f"{kind}:{device}" if isinstance(device, int) else (device or kind)


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Reads the overloads of to(): (device, dtype, non_blocking, memory_format)."""
    named = dict(kwargs)
    memory_format = kwargs.pop("memory_format", None)
    rest = [of_python(value) for value in args]
    device = dtype = None
    if rest and isinstance(rest[0], Tensor):
        tensor = rest.pop(0)
        device, dtype = tensor.device, tensor.dtype
    elif rest and isinstance(rest[0], mindtorch.dtype):
        dtype = rest.pop(0)
    elif rest:
        device = rest.pop(0)
        if rest and not isinstance(rest[0], bool):
            dtype = rest.pop(0)
    if "tensor" in kwargs or "other" in kwargs:
        tensor = kwargs.pop("tensor", None) or kwargs.pop("other")
        device, dtype = tensor.device, tensor.dtype
    device = kwargs.pop("device", device)
    dtype = of_python(kwargs.pop("dtype", dtype))
    non_blocking = kwargs.pop("non_blocking", rest.pop(0) if rest else False)
    kwargs.pop("copy", None)
    known = dtype is None or isinstance(dtype, mindtorch.dtype)
    known = known and (device is None or isinstance(device, str | Device | int))
    known = known and isinstance(non_blocking, bool)
    if kwargs or not known or len(rest) > 1:
        raise refusal_of_to(args, named)
    return None if device is None else mindtorch.device(device), dtype, non_blocking, memory_format
