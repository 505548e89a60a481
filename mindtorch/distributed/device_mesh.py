"""Owns torch.distributed's meshes: processes in rows and columns, a group for each dimension.

Refuses other backends for some of its dimensions: every group has that of all processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import mindtorch

from .._tensor.geometry import contiguous_strides
from . import get_rank, get_world_size, init_process_group, is_initialized, new_group
from ._group import ProcessGroup, default

__all__ = ["DeviceMesh", "init_device_mesh"]
Names = tuple[str, ...]


class DeviceMesh:
    """Ranks by their places in a grid, `mesh`; every process makes the same one, in the same order.

    RuntimeError for more ranks than there are processes, or one of them twice; KeyError for a
    dimension that has no such name.
    """

    def __init__(
        self, device_type: str, mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None,
        backend_override: object = None, _init_backend: bool = True, _of: Any = None,
    ) -> None:  # fmt: skip
        if backend_override is not None:
            raise NotImplementedError("DeviceMesh: backend_override: groups have one backend here")
        self.device_type = device_type
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        ranks = mesh.cpu().numpy() if isinstance(mesh, mindtorch.Tensor) else np.asarray(mesh)
        self._ranks, self._root = ranks.astype(np.int32), self
        self._groups: list[ProcessGroup | int] = []
        if _of is not None:
            self._root, self._groups = _of
            return
        if not is_initialized():
            init_process_group()
        self._refuse_ranks()
        if _init_backend:
            self._groups = [_group_here(self._rows(dim)) for dim in range(self.ndim)]

    def _refuse_ranks(self) -> None:
        count, size = get_world_size(), self._ranks.size
        if size > count:
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {count}, but found {size}"
                " ranks!"
            )
        if len(np.unique(self._ranks)) < size:
            raise RuntimeError(f"DeviceMesh: each rank once, got {self._ranks.tolist()}")

    def _rows(self, *dims: int) -> list[list[int]]:
        """The ranks of each group along some dimensions."""
        rest = [d for d in range(self.ndim) if d not in dims]
        count = int(np.prod([self.shape[d] for d in dims]))
        rows: list[list[int]] = self._ranks.transpose(*rest, *dims).reshape(-1, count).tolist()
        return rows

    @property
    def mesh(self) -> Any:
        """The ranks, int32 on the cpu."""
        return mindtorch.from_numpy(self._ranks.copy())

    @property
    def shape(self) -> tuple[int, ...]:
        """How many processes each dimension has."""
        return tuple(self._ranks.shape)

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return self._ranks.ndim

    def size(self, mesh_dim: int | None = None) -> int:
        """How many processes a dimension, or all of it, has."""
        return int(self._ranks.size) if mesh_dim is None else self.shape[mesh_dim]

    def _dim(self, mesh_dim: int | str | None, end: str = "") -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions",
                    "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
                    *filter(None, [end]),
                )
            return 0
        if isinstance(mesh_dim, int):
            return mesh_dim
        if mesh_dim not in (self.mesh_dim_names or ()):
            raise KeyError(
                f"Mesh dimension '{mesh_dim}' does not exist.",
                f"Available mesh dimensions are: mesh_dim_names={self.mesh_dim_names}",
            )
        return (self.mesh_dim_names or ()).index(mesh_dim)

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup | int:
        """The group of this process along a dimension, which may be left out where there is one."""
        every = (
            "If you want to get the list of all the ProcessGroups in the DeviceMesh,"
            "please use `get_all_groups()` instead."
        )
        return self._groups[self._dim(mesh_dim, every)]

    def get_all_groups(self) -> list[ProcessGroup | int]:
        """The groups of this process, by dimension."""
        return list(self._groups)

    def get_rank(self) -> int:
        """This process's rank among all."""
        return get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """This process's place in the mesh; None where it has none."""
        places = np.argwhere(self._ranks == get_rank())
        return tuple(places[0].tolist()) if len(places) else None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This process's rank in its group along a dimension, which counts ranks upwards."""
        return get_rank(self._groups[self._dim(mesh_dim)])

    def __getitem__(self, mesh_dim_names: str | Names) -> DeviceMesh:
        """The part of the mesh along some dimensions that this process is in."""
        local = self.mesh_dim_names
        if local is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if any(name not in local for name in names):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {list(local)}."
            )
        dims = [local.index(name) for name in names]
        place = self.get_coordinate() or (0,) * self.ndim
        through = tuple(slice(None) if d in dims else place[d] for d in range(self.ndim))
        order = [sorted(dims).index(d) for d in dims]
        part = self._ranks[through].transpose(order)
        groups = [self._groups[d] for d in dims] if self._groups else []
        return DeviceMesh(self.device_type, part, mesh_dim_names=names, _of=(self._root, groups))

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """One dimension of all; every process of the mesh calls it."""
        root, local = self._root, self.mesh_dim_names or ()
        dims = [(root.mesh_dim_names or ()).index(name) for name in local] or range(root.ndim)
        group = _group_here(root._rows(*dims))
        name = mesh_dim_name or "_".join(local)
        names = (name,) if name else None
        flat = self._ranks.reshape(-1)
        return DeviceMesh(self.device_type, flat, mesh_dim_names=names, _of=(root, [group]))

    @staticmethod
    def from_group(
        group: ProcessGroup | Sequence[ProcessGroup], device_type: str, mesh: Any = None, *,
        mesh_dim_names: Sequence[str] | None = None,
    ) -> DeviceMesh:  # fmt: skip
        """A mesh of groups that exist: one, or one for each dimension of `mesh`."""
        groups = [group] if isinstance(group, ProcessGroup) else list(group)
        ranks = groups[0].ranks if mesh is None else mesh
        whole = DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _of=(None, groups))
        whole._root = whole
        return whole

    def __enter__(self) -> DeviceMesh:
        _OPEN.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _OPEN.pop()

    def __reduce__(self) -> Any:
        return mesh_of, (self.device_type, self._ranks.tolist(), self.mesh_dim_names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceMesh):
            return False
        mine, theirs = (
            (m.device_type, m.mesh_dim_names, m.shape, m._ranks.tolist()) for m in (self, other)
        )
        return mine == theirs

    def __hash__(self) -> int:
        return hash((self.device_type, self.mesh_dim_names, self.shape, self._ranks.tobytes()))

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{name}={size}"
            for name, size in zip(self.mesh_dim_names or (), self.shape, strict=False)
        )
        steps = contiguous_strides(tuple(self.shape))
        strides = tuple(() if n == 1 else step for n, step in zip(self.shape, steps, strict=True))
        shape = f"({sizes})" if sizes else tuple(self.shape)
        return f"DeviceMesh({shape}, '{self.device_type}', stride={strides})"


def mesh_of(device_type: str, ranks: Any, mesh_dim_names: Sequence[str] | None) -> DeviceMesh:
    """A mesh as files hold it; without groups where processes have not met."""
    of: Any = None if is_initialized() else (None, [])
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _of=of)


_OPEN: list[DeviceMesh] = []


def current_mesh() -> DeviceMesh:
    """The innermost mesh that is open as a context; RuntimeError without one."""
    if not _OPEN:
        raise RuntimeError("No device mesh is currently active!")
    return _OPEN[-1]


def _group_here(rows: list[list[int]]) -> ProcessGroup | int:
    """This process's group of those that the rows become; that of all processes is there."""
    if rows == [list(range(get_world_size()))]:
        return default()
    groups = [new_group(row) for row in rows]
    return next((g for g in groups if isinstance(g, ProcessGroup)), groups[0])


def init_device_mesh(
    device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None,
    backend_override: object = None,
) -> DeviceMesh:  # fmt: skip
    """A mesh of the first processes, row after row; all processes meet where they have not yet."""
    shape = tuple(mesh_shape)
    if mesh_dim_names is not None:
        names = tuple(mesh_dim_names)
        if len(set(names)) < len(names):
            raise RuntimeError(
                "Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names"
                f" {names}"
            )
        if len(names) != len(shape):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! Found"
                f" len(mesh_dim_names): {len(names)} and len(mesh_shape):{len(shape)}."
            )
    if not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    ranks = np.arange(int(np.prod(shape))).reshape(shape)
    return DeviceMesh(
        device_type, ranks, mesh_dim_names=mesh_dim_names, backend_override=backend_override
    )
