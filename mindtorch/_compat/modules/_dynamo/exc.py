"""torch._dynamo.exc: what a compiler would raise, for handlers."""

from ..compiler.graph_breaks import VERBOSE


class TorchDynamoException(RuntimeError):
    """Base of what a compiler would raise."""


class TorchRuntimeError(TorchDynamoException):
    """What running compiled code would raise."""


class Unsupported(TorchDynamoException):
    """What a compiler would raise for code that it cannot take."""


class RecompileError(TorchDynamoException):
    """A function would be compiled again, and the settings forbid it."""


class FailOnRecompileLimitHit(TorchDynamoException):
    """A function was compiled as often as it may be, and the settings make that an error."""


class ShortenTraceback(TorchDynamoException):
    """Errors whose traceback torch cuts."""


class BackendCompilerFailed(ShortenTraceback):
    """A backend raised `inner_exception`."""

    def __init__(self, backend_fn: object, inner_exception: Exception):
        self.backend_name = getattr(backend_fn, "__name__", "?")
        self.inner_exception = inner_exception
        super().__init__(
            f"backend={self.backend_name!r} raised:\n"
            f"{type(inner_exception).__name__}: {inner_exception}\n\n{VERBOSE}"
        )


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


class UserError(TorchDynamoException):
    """What a program has to mend before it can be exported."""
