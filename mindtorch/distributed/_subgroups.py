"""Owns groups of some of the processes, and what they can do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta

from . import _group
from ._calls import Group, GroupMember
from ._group import ProcessGroup


class BackendConfig:
    """The backend of each type of device, of `gloo` or `cpu:gloo,npu:hccl`; ValueError for a
    device that is named twice and for what is no pair."""

    def __init__(self, backend: str) -> None:
        pairs = [pair.split(":") for pair in backend.lower().split(",")]
        if backend == "undefined":
            pairs = [["cpu", "gloo"], ["npu", "hccl"]]
        elif ":" not in backend:
            pairs = [["cpu", backend], ["npu", backend]]
        self.device_backend_map: dict[str, str] = {}
        for pair in pairs:
            device, name = pair if len(pair) == 2 else (backend, "")
            if len(pair) != 2 or device in self.device_backend_map:
                what = (
                    f"device:backend pairing: {backend}" if len(pair) != 2 else f"second {device}"
                )
                raise ValueError(f"Invalid {what}: expected device:backend,device:backend")
            self.device_backend_map[device] = name

    def get_device_backend_map(self) -> dict[str, str]:
        """Backends by types of devices."""
        return self.device_backend_map

    def __repr__(self) -> str:
        return ",".join(map(":".join, self.device_backend_map.items()))


def new_group(
    ranks: Sequence[int] | None = None, timeout: timedelta | float | None = None,
    backend: str | None = None, pg_options: object = None, use_local_synchronization: bool = False,
    group_desc: str | None = None, device_id: object = None, sort_ranks: bool = True,
) -> ProcessGroup | int:  # fmt: skip
    """A group of some ranks (all without `ranks`), with connections of its own; every process calls
    this, in the same order, and who is not in it gets GroupMember.NON_GROUP_MEMBER."""
    if use_local_synchronization:
        raise NotImplementedError("new_group: every process takes part; leave local ones out")
    members = sorted(ranks) if ranks is not None and sort_ranks else ranks
    process_group = _group.make(members, backend, _group.seconds_of(timeout))
    if process_group is not None and group_desc is not None:
        process_group.group_desc = group_desc
    return GroupMember.NON_GROUP_MEMBER if process_group is None else process_group


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]], timeout: timedelta | float | None = None,
    backend: str | None = None, pg_options: object = None, group_desc: str | None = None,
) -> tuple[ProcessGroup | None, list[ProcessGroup | int]]:  # fmt: skip
    """A group for each list of ranks: (that of this process, all of them)."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: dict[int, Sequence[int]] = {}
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in seen:
                raise ValueError(
                    f"Rank {rank} has appeared in both subgroup {seen[rank]} and {ranks}"
                )
            seen[rank] = ranks
    groups = [
        new_group(ranks, timeout, backend, group_desc=group_desc)
        for ranks in ranks_per_subgroup_list
    ]
    return next((g for g in groups if isinstance(g, ProcessGroup)), None), groups


def new_subgroups(
    group_size: int | None = None, group: Group = None, timeout: timedelta | float | None = None,
    backend: str | None = None, pg_options: object = None, group_desc: str | None = None,
) -> tuple[ProcessGroup | None, list[ProcessGroup | int]]:  # fmt: skip
    """Groups of `group_size` neighbours each, of as many as one host's NPUs for None: (that of this
    process, all of them)."""
    if group_size is None and "hccl" not in _group.default().backend:
        raise ValueError(
            "Default group size only takes effect when CUDA is available.If your subgroup using a "
            "backend that does not depend on CUDA,please pass in 'group_size' correctly."
        )
    count = _group.default().count
    size = int(os.environ.get("LOCAL_WORLD_SIZE", count)) if group_size is None else group_size
    if size <= 0:
        raise ValueError(f"The arg 'group_size' ({size}) must be positive")
    if size > count:
        raise ValueError(f"The arg 'group_size' ({size}) must not exceed the world size ({count})")
    if count % size:
        raise ValueError(f"The world size ({count}) must be divisible by 'group_size={size}'")
    ranks = [range(i, i + size) for i in range(0, count, size)]
    return new_subgroups_by_enumeration(ranks, timeout, backend, None, group_desc)


def get_pg_count() -> int:
    """How many groups were made, those without this process too."""
    return _group._serial + (_group.current() is not None)


def supports_complex(reduceOp: str) -> bool:  # noqa: N803 - torch's name
    """Whether a reduction takes complex numbers: sums, means and products with a number do."""
    return reduceOp in ("SUM", "AVG", "PREMUL_SUM")


def split_group(
    parent_pg: ProcessGroup | None = None, split_ranks: Sequence[Sequence[int]] | None = None,
    timeout: timedelta | None = None, pg_options: object = None, group_desc: str | None = None,
    backend: str | None = None,
) -> ProcessGroup | None:  # fmt: skip
    """ValueError without ranks, RuntimeError else: groups are not bound to devices, whose
    communicators it splits in torch; `new_group` makes them."""
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    raise RuntimeError(
        "No device associated with the default pg, not safe to split any process groups"
    )
