"""torch.testing._internal.optests: opcheck and its error."""

from mindtorch.library.registration import OpCheckError, opcheck

__all__ = ["OpCheckError", "opcheck"]
