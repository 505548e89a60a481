"""torch.npu's switches of CANN's compiler and formats, as torch_npu has them.

Sources: Ascend Extension for PyTorch, "torch_npu.npu.set_option", "torch.npu.config"; names of
options as torch_npu 2.13.0 takes them.
"""

from __future__ import annotations

from typing import Any

# Options that torch_npu knows; ACLNN's operators read none of them.
_OPTIONS = frozenset((
    "ACL_OP_SELECT_IMPL_MODE", "ACL_OPTYPELIST_FOR_IMPLMODE", "ACL_OP_DEBUG_LEVEL",
    "ACL_DEBUG_DIR", "ACL_OP_COMPILER_CACHE_MODE", "ACL_OP_COMPILER_CACHE_DIR",
    "ACL_PRECISION_MODE", "ALLOW_MATMUL_HF32", "ALLOW_CONV_HF32", "jitCompile",
    "MM_BMM_ND_ENABLE", "mdldumpswitch", "mdldumpconfigpath", "CONV_FORCE_FP16",
))  # fmt: skip
OPTIONS: dict[str, Any] = {}


class Config:
    """`torch.npu.config`: `allow_internal_format` is kept and asked for by nobody, because tensors
    lie in their plain format; attributes are there once they were set."""

    allow_internal_format: bool


config = Config()


def set_option(option: dict[str, Any]) -> None:
    """Set options of CANN's compiler; TypeError for no dict, RuntimeError for an unknown name."""
    if not isinstance(option, dict):
        raise TypeError("npu option must be a dict.")
    for name in option:
        if name not in _OPTIONS:
            raise RuntimeError(f"invalid npu option name:{name}")
    OPTIONS.update(option)


def set_compile_mode(*, jit_compile: bool = False) -> None:
    """Whether operators are compiled for their shapes, as in torch_npu; ACLNN's never are, so that
    there is nothing to switch. TypeError for another class.
    """
    if not isinstance(jit_compile, bool):
        raise TypeError(f"jit_compile should be of bool type, but got {type(jit_compile)}")


def is_jit_compile_false() -> bool:
    """True: see `set_compile_mode`."""
    return True
