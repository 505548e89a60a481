"""torch._subclasses.fake_tensor: the names of mindtorch.fx.fake."""

from mindtorch.fx.fake import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorDeviceMismatchError,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    is_fake,
    unset_fake_temporarily,
)
from mindtorch.library.registration import MetadataMismatchError, UnsupportedOperatorException

__all__ = [
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorDeviceMismatchError",
    "FakeTensorMode",
    "MetadataMismatchError",
    "UnsupportedFakeTensorException",
    "UnsupportedOperatorException",
    "is_fake",
    "unset_fake_temporarily",
]
