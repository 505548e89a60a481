"""torch.distributed.rpc's names: calls on other processes are refused."""

from collections.abc import Callable

from .._compat.refusals import refusals, refused

_NAMES = (
    "BackendType", "PyRRef", "RRef", "RpcAgent", "RpcBackendOptions", "TensorPipeAgent",
    "TensorPipeRpcBackendOptions", "WorkerInfo", "get_rpc_timeout", "get_worker_info",
    "init_rpc", "remote", "rpc_async", "rpc_sync", "shutdown",
)  # fmt: skip
_WHY = "mindtorch calls no functions on other processes"

__path__: list[str] = []  # what is below is in absent_modules.txt
__all__ = list(_NAMES)
__getattr__ = refusals("torch.distributed.rpc", _WHY, _NAMES)


def _require_initialized(func: Callable[..., object]) -> Callable[..., object]:
    """A function of remote calls, refused when it is called, not where it is defined."""
    refuse: Callable[..., object] = refused(f"torch.distributed.rpc.api.{func.__name__}", _WHY)
    return refuse


_all_gather = refused("torch.distributed.rpc.api._all_gather", _WHY)
