"""Owns storage formats: tensors here lie in their plain format, as torch_npu lays them out where
`torch.npu.config.allow_internal_format` is False."""

from __future__ import annotations

from enum import IntEnum

from .._tensor.tensor import Tensor


class Format(IntEnum):
    """aclFormat's values, by the names that torch_npu gives them."""

    UNDEFINED = -1
    NCHW = 0
    NHWC = 1
    ND = 2
    NC1HWC0 = 3
    FRACTAL_Z = 4
    NC1HWC0_C04 = 12
    HWCN = 16
    NDHWC = 27
    FRACTAL_NZ = 29
    NCDHW = 30
    NDC1HWC0 = 32
    FRACTAL_Z_3D = 33
    NC = 35
    NCL = 47
    FRACTAL_NZ_C0_16 = 50
    FRACTAL_NZ_C0_32 = 51
    FRACTAL_NZ_C0_2 = 52
    FRACTAL_NZ_C0_4 = 53
    FRACTAL_NZ_C0_8 = 54

    def __str__(self) -> str:
        return self.name


# The plain format of a tensor by its rank.
_PLAIN = {3: Format.NCL, 4: Format.NCHW, 5: Format.NCDHW}


def get_npu_format(self: Tensor) -> Format:
    """The format in which a tensor of npu lies: by its rank."""
    if self.device.type != "npu":
        raise NotImplementedError(
            "Could not run 'npu::get_npu_format' with arguments from the"
            f" '{self.device.type.upper()}' backend."
        )
    return _PLAIN.get(self.dim(), Format.ND)


def npu_format_cast(
    self: Tensor, acl_format: int | Tensor, *, customize_dtype: int | None = None,
    input_dtype: int | None = None,
) -> Tensor:  # fmt: skip
    """The tensor in a format: itself where it lies so, else its copy in its plain format.

    Formats of blocks (FRACTAL_NZ and its like) are hints for speed and change no value: operators
    take plain tensors. ValueError for a number that is no format.
    """
    if isinstance(acl_format, Tensor):
        acl_format = get_npu_format(acl_format)
    return self if Format(acl_format) == get_npu_format(self) else self.clone()


def npu_format_cast_(self: Tensor, acl_format: int | Tensor) -> Tensor:
    """The tensor itself: see `npu_format_cast`."""
    npu_format_cast(self, acl_format)
    return self
