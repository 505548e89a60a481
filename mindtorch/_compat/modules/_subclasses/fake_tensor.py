"""torch._subclasses.fake_tensor: no tensor is fake; making one is refused."""

from mindtorch._compat.refusals import refused
from mindtorch.library.registration import MetadataMismatchError, UnsupportedOperatorException

__all__ = ["FakeTensor", "FakeTensorMode", "MetadataMismatchError",
           "UnsupportedOperatorException", "is_fake"]  # fmt: skip

_WHY = "mindtorch has no fake tensors; the meta device computes shapes"
FakeTensor = refused("torch._subclasses.fake_tensor.FakeTensor", _WHY)
FakeTensorMode = refused("torch._subclasses.fake_tensor.FakeTensorMode", _WHY)


def is_fake(x: object) -> bool:
    """False."""
    return False
