"""torch._dynamo.exc: what a compiler would raise, for handlers."""


class TorchDynamoException(RuntimeError):
    """Base of what a compiler would raise."""


class TorchRuntimeError(TorchDynamoException):
    """What running compiled code would raise."""


class Unsupported(TorchDynamoException):
    """What a compiler would raise for code that it cannot take."""


class TensorifyScalarRestartAnalysis(TorchDynamoException):
    """What a compiler would raise to begin again."""
