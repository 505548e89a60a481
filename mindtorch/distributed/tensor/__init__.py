"""torch.distributed.tensor: tensors over the processes of a mesh."""

from ..._functional.pickling import wrapper_from
from ...serialization import add_safe_globals
from ..device_mesh import DeviceMesh as DeviceMesh, init_device_mesh as init_device_mesh, mesh_of
from ._api import DTensor, DTensorSpec, TensorMeta, distribute_tensor
from ._filling import distribute_module, empty, full, ones, rand, randn, zeros
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module",
    "distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros",
]  # fmt: skip

# What files of such tensors name.
add_safe_globals(
    [DTensor, DTensorSpec, TensorMeta, Partial, Replicate, Shard, mesh_of, wrapper_from]
)
