"""The command `mindtorch-npu`, and its work as functions: `check` and `assert_conforms`."""

TYPE_CHECKING = False  # type checkers take it for true; an import would keep Ctrl-C waiting
if TYPE_CHECKING:
    from .api import CheckReport, Failure, assert_conforms, check

__all__ = ["CheckReport", "Failure", "assert_conforms", "check"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import api

    return getattr(api, name)
