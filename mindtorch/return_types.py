"""Owns the named tuples that functions with several results return."""

from __future__ import annotations

from typing import Any, NamedTuple


class _Pair(NamedTuple):
    values: Any
    indices: Any


class max(_Pair):  # noqa: N801 - torch's name
    """`values` and `indices` along a dimension."""

    __slots__ = ()


class min(_Pair):  # noqa: N801 - torch's name
    """`values` and `indices` along a dimension."""

    __slots__ = ()


class sort(_Pair):  # noqa: N801 - torch's name
    """Sorted `values` and where they came from."""

    __slots__ = ()


class topk(_Pair):  # noqa: N801 - torch's name
    """The k extreme `values` and their `indices`."""

    __slots__ = ()


class kthvalue(_Pair):  # noqa: N801 - torch's name
    """The k-th smallest `values` and their `indices`."""

    __slots__ = ()


class median(_Pair):  # noqa: N801 - torch's name
    """The lower median `values` and their `indices`."""

    __slots__ = ()


class mode(_Pair):  # noqa: N801 - torch's name
    """The most frequent `values` and one of their `indices`."""

    __slots__ = ()


class cummax(_Pair):  # noqa: N801 - torch's name
    """Running maxima and where they stand."""

    __slots__ = ()


class cummin(_Pair):  # noqa: N801 - torch's name
    """Running minima and where they stand."""

    __slots__ = ()


class aminmax(NamedTuple):  # noqa: N801 - torch's name
    """The smallest and the largest element."""

    min: Any
    max: Any
