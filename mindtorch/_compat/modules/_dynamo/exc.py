"""torch._dynamo.exc: what a compiler would raise, for handlers."""


class TorchDynamoException(RuntimeError):
    """Base of what a compiler would raise."""


class TorchRuntimeError(TorchDynamoException):
    """What running compiled code would raise."""


class Unsupported(TorchDynamoException):
    """What a compiler would raise for code that it cannot take."""


class UncapturedHigherOrderOpError(TorchDynamoException):
    """A function of a higher-order operator is no graph."""


class InvalidBackend(TorchDynamoException):
    """Raised for the name of no backend of torch's."""

    def __init__(self, name: object):
        super().__init__(
            f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available"
            " backends."
        )


class TensorifyScalarRestartAnalysis(TorchDynamoException):
    """What a compiler would raise to begin again."""


class UserError(Unsupported):
    """What a program has to mend before it can be exported."""
