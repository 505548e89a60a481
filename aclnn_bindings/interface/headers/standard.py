"""Owns macros that headers take from the C library and from Linux; they are not in an install."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .raw import Macro

_LIMITS: Final = {
    "CHAR_BIT": "8", "UCHAR_MAX": "255", "SHRT_MAX": "32767", "USHRT_MAX": "65535",
    "INT_MAX": "2147483647", "INT_MIN": "(-2147483647 - 1)", "UINT_MAX": "4294967295U",
    "LONG_MAX": "9223372036854775807L", "ULONG_MAX": "18446744073709551615UL",
    "LLONG_MAX": "9223372036854775807LL", "ULLONG_MAX": "18446744073709551615ULL",
    "INT8_MAX": "127", "INT16_MAX": "32767", "INT32_MAX": "2147483647",
    "INT64_MAX": "9223372036854775807L", "INT8_MIN": "(-128)", "INT16_MIN": "(-32768)",
    "INT32_MIN": "(-2147483647 - 1)", "INT64_MIN": "(-9223372036854775807L - 1)",
    "UINT8_MAX": "255", "UINT16_MAX": "65535", "UINT32_MAX": "4294967295U",
    "UINT64_MAX": "18446744073709551615UL", "SIZE_MAX": "18446744073709551615UL",
    "PATH_MAX": "4096", "NAME_MAX": "255",
}  # fmt: skip
# Request numbers of ioctl(2): direction, size, type and number, as Linux packs them on these
# machines (include/uapi/asm-generic/ioctl.h).
_REQUESTS: Final = {
    "_IO": (("t", "n"), "(((t) << 8) | (n))"),
    "_IOR": (("t", "n", "s"), "((2U << 30) | (sizeof(s) << 16) | ((t) << 8) | (n))"),
    "_IOW": (("t", "n", "s"), "((1U << 30) | (sizeof(s) << 16) | ((t) << 8) | (n))"),
    "_IOWR": (("t", "n", "s"), "((3U << 30) | (sizeof(s) << 16) | ((t) << 8) | (n))"),
}
SYSTEM: Final[Mapping[str, Macro]] = {
    **{name: Macro(None, body, 0) for name, body in _LIMITS.items()},
    **{name: Macro(params, body, 0) for name, (params, body) in _REQUESTS.items()},
}
