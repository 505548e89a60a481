"""torch._ops: the classes of operators, their overloads and those of functions."""

from mindtorch.fx.higher_order import HigherOrderOperator
from mindtorch.ops.namespaces import OpOverload, OpOverloadPacket

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket"]
