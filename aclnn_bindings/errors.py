"""Owns the errors of using the bindings wrongly; those of status codes are in runtime/status.py."""

from __future__ import annotations


class BindingError(Exception):
    """Base of every error that these bindings raise on purpose."""


class ArgumentError(BindingError, TypeError, ValueError):
    """An argument does not fit the signature: count, name, kind or range. Nothing was called."""


class RuntimeStateError(BindingError, RuntimeError):
    """The runtime is not there: not started, or closed."""


class ForkedError(RuntimeStateError):
    """The process is a fork of one that had started the runtime; ACL does not survive that."""


class ClosedHandleError(RuntimeStateError):
    """A stream, event, buffer, context, plan or descriptor was used after its close."""


class StillUsedError(RuntimeStateError):
    """Something cannot be closed while others depend on it."""


class UnknownPointerError(BindingError, ValueError):
    """An address that no live block starts at: freed twice, or never allocated here."""


class MissingSymbolError(BindingError, LookupError, AttributeError):
    """No header declares the function or no library exports it; to `hasattr` it is not there."""


class UntrustedSignatureError(BindingError, RuntimeError):
    """What is declared need not be what the library that exports it takes; nothing was called."""


class UnsupportedSignatureError(BindingError, NotImplementedError):
    """A function that these bindings cannot call: a struct by value, or varargs."""
