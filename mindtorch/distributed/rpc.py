"""torch.distributed.rpc's names: calls on other processes are refused."""

from .._functional.refusals import refusals

_NAMES = (
    "BackendType", "PyRRef", "RRef", "RpcAgent", "RpcBackendOptions", "TensorPipeAgent",
    "TensorPipeRpcBackendOptions", "WorkerInfo", "get_rpc_timeout", "get_worker_info",
    "init_rpc", "remote", "rpc_async", "rpc_sync", "shutdown",
)  # fmt: skip
_WHY = "mindtorch calls no functions on other processes"

__path__: list[str] = []  # what is below stands in _elsewhere.txt
__all__ = list(_NAMES)
__getattr__ = refusals("torch.distributed.rpc", _WHY, _NAMES)
