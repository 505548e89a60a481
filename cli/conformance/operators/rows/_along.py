"""Sizes, dtypes and contents of operators that work along one axis of tensors of any rank."""

from __future__ import annotations

from ....spec import *
from ....spec.declaration import Table
from ....spec.sizes import Role
from ....spec.words import Sizes
from ._words import *

# The whole tensor: leading dims, the axis, trailing dims.
WHOLE: Final = "*B A *N"
_ROLES: Final[dict[str, Role]] = {
    "*B": row(3, "-", 1, "2x3", 65, "2x1x3"), "A": row(6, 1, 2, 17, 130, 1025),
    "*N": row(5, "-", 1, "2x3", 65, 1030), "I": row(4, 1, 2, 17, 130),
    "J": row(5, 1, 3, 18, 131), "*I": row(4, "-", 1, "2x3", 17, 300),
}  # fmt: skip


def along(names: str, **more: Role | str) -> Sizes:
    """The sizes of these names: `A` is the axis, `*B` and `*N` stand around it, `I` and `J` are
    other lengths of the axis."""
    return sizes({**{n: _ROLES[n] for n in names.split()}, **more})


_INTEGERS: Final = "i8 i16 i32 i64 u8"
REAL: Final = f"f32 f16 bf16 f64 {_INTEGERS}"
EVERY: Final = f"{REAL} bool c64 c128"


def pairs(one: str, other: str, of: str = EVERY, and_: str = "i64 i32") -> Table:
    """Each dtype of one parameter with each of another."""
    return dtypes(f"{one} {other}\n{'|'.join(of.split())} {'|'.join(and_.split())}")


def near(dtype: str, large: int = 24) -> int:
    """A whole number beyond which floats of so many digits have no neighbours, within a dtype."""
    if dtype.startswith(("int", "uint")):
        return min(2**large, int(np.iinfo(dtype).max) - 128)
    return 0


def value_of(scalar: Any) -> Any:
    """The number of a scalar parameter of a draw."""
    return getattr(scalar, "value", scalar)


def complex_too(values: Array, dtype: str) -> Array:
    """Whole numbers with imaginary parts of their own where the dtype is complex."""
    return values + 1j * (values % 3) if dtype.startswith("complex") else values
