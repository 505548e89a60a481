"""torch._dynamo._trace_wrapped_higher_order_op: the mode that makes x[tensor] an index."""

from __future__ import annotations

from mindtorch._dispatch.overrides import BaseTorchFunctionMode


class TransformGetItemToIndex(BaseTorchFunctionMode):
    """Nothing to transform: indexing with a tensor of one element reads no number here."""
