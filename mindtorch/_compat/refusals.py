"""Owns public names that are there to be refused: what a call says of itself, and why.

A module lists its names. Those of classes are classes, for isinstance and for subclasses.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any


class _RefusedClass(type):
    """Classes to be refused: their public attributes, such as members of enumerations, too."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_") or name in ("mro",):
            raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'")
        return refused(
            f"{cls.__module__.replace('mindtorch', 'torch', 1)}.{cls.__name__}.{name}",
            str(cls.__doc__).partition(": ")[2],
        )


@cache
def refused(full_name: str, why: str) -> Any:
    """A class or function that raises NotImplementedError: `full_name` is its name in torch."""
    module, _, name = full_name.rpartition(".")
    text = f"{full_name}: {why}"

    def refuse(*_: object, **__: object) -> Any:
        raise NotImplementedError(text)

    home = module.replace("torch", "mindtorch", 1)
    if name[:1].isupper():
        # `except torch.AcceleratorError` wants an exception.
        bases = (RuntimeError,) if name.endswith(("Error", "Exception")) else ()
        return _RefusedClass(name, bases, {"__init__": refuse, "__module__": home, "__doc__": text})
    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__ = home
    refuse.__doc__ = text
    return refuse


# Types of devices as torch's dispatcher calls them.
BACKENDS = {"cpu": "CPU", "meta": "Meta", "npu": "PrivateUse1"}
# What torch counts as backends of any operator; an operator without a kernel for autograd lacks
# those of devices that only some builds have.
_LAYERS = (
    "BackendSelect Python FuncTorchDynamicLayerBackMode Functionalize Conjugate Negative ZeroTensor"
    " ADInplaceOrView AutogradOther AutogradCPU AutogradCUDA AutogradHIP? AutogradXLA AutogradMPS"
    " AutogradIPU? AutogradXPU AutogradHPU AutogradVE? AutogradLazy AutogradMTIA AutogradMAIA"
    " AutogradPrivateUse1 AutogradPrivateUse2? AutogradPrivateUse3? AutogradMeta"
    " AutogradNestedTensor? Tracer AutocastCPU AutocastMTIA AutocastMAIA AutocastXPU AutocastMPS"
    " AutocastCUDA FuncTorchBatched BatchedNestedTensor FuncTorchVmapMode Batched VmapMode"
    " FuncTorchGradWrapper PythonTLSSnapshot FuncTorchDynamicLayerFrontMode PreDispatch"
    " PythonDispatcher"
)


@cache
def _kernel_backends() -> dict[str, str]:
    """The kinds of tensors that operators of torch have kernels for."""
    place = os.path.join(os.path.dirname(__file__), "kernel_backends.txt")
    with open(place, encoding="utf-8") as file:
        lines = [line.partition(": ") for line in file if not line.startswith("#")]
    return {name: kinds for kinds, _, names in lines for name in names.split()}


def without_kernel(
    name: str, backend: str, kinds: str | None = None, differentiable: bool = True
) -> str:
    """What torch says of an operator that has no kernel for a kind of tensors.

    `name` is one of aten's, or has its namespace; `kinds` are those that it has kernels for, known
    for aten's.
    """
    full = name if "::" in name else f"aten::{name}"
    kinds = _kernel_backends().get(name) if kinds is None else kinds
    text = (
        f"Could not run '{full}' with arguments from the '{backend}' backend. This could be"
        " because the operator doesn't exist for this backend, or was omitted during the"
        " selective/custom build process (if using custom build)."
    )
    if kinds is None:
        return text
    layers = [k for k in _LAYERS.split() if differentiable or not k.endswith("?")]
    backends = ", ".join((*kinds.split(), *(k.removesuffix("?") for k in layers)))
    return (
        f"{text} If you are a Facebook employee using PyTorch on mobile, please visit"
        f" https://fburl.com/ptmfixes for possible resolutions. '{full}' is only available for"
        f" these backends: [{backends}]."
    )


def refusals(full_name: str, why: str, names: Iterable[str]) -> Callable[[str], Any]:
    """A module's `__getattr__`: the names that torch has there are refused when called."""
    known = frozenset(names)

    def find(name: str) -> Any:
        if name in known:
            return refused(f"{full_name}.{name}", why)
        raise AttributeError(
            f"module '{full_name.replace('torch', 'mindtorch', 1)}' has no attribute '{name}'"
        )

    return find
