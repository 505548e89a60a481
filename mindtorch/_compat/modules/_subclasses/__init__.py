"""torch._subclasses: fake tensors are refused, the meta device computes shapes."""

from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
