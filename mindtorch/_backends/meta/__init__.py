"""The backend of tensors without data: results have a Geometry and a size, nothing is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor.geometry import Geometry
from ..._tensor.storage import MetaMemory, Storage
from ..._tensor.tensor import Tensor, wrap
from ...ops.rules import Results, data_dependent, refuse_meta
from ...ops.spec import Op


class MetaBackend:
    """Runs nothing; see `registry.DeviceBackend`."""

    def allocate(self, geom: Geometry) -> Tensor:
        return wrap(geom, Storage(MetaMemory(geom.extent * geom.dtype.itemsize)))

    def functional(self, op: Op, args: Sequence[Any], outs: Results) -> Callable[..., Any]:
        known = [out for out in outs if isinstance(out, Geometry)]
        if len(known) < len(outs):
            refuse_meta(op.base_name)
        if len(op.schema.returns) == 1 and not op.schema.returns[0].list:
            geom = known[0]
            return lambda *_: self.allocate(geom)
        return lambda *_: tuple([self.allocate(g) for g in known])

    def has_kernel(self, op: Op, args: Sequence[Any], outs: Results) -> bool:
        return True

    def into(
        self,
        op: Op,
        args: Sequence[Any],
        outs: tuple[Geometry, ...],
        dests: tuple[Geometry, ...],
        inplace: bool,
    ) -> Callable[..., None]:
        return lambda *_: None

    def copy(self, dest: Tensor, source: Tensor) -> None:
        """Nothing to move; shapes were checked by the rule of `copy`. NotImplementedError where a
        tensor with data would take what there is not."""
        if dest._geom.device.type != "meta":
            raise data_dependent(NotImplementedError("Cannot copy out of meta tensor; no data!"))

    def write_back(self, op: Op, dest: Tensor, source: Tensor) -> None:
        """Metadata only: `dest` keeps its Geometry, which `source` matches."""


backend = MetaBackend()
