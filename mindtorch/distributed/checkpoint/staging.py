"""Owns copies of a state on the cpu, which a save that goes on beside training writes."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ..._tensor.tensor import Tensor
from ...utils._pytree import tree_map
from ..tensor._api import DTensor

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


def copied(state: Any) -> Any:
    """The state with tensors of its own, on the cpu."""
    return tree_map(_copy, state)


def _copy(value: Any) -> Any:
    if isinstance(value, DTensor):
        return DTensor(_copy(value.to_local()), value._spec)
    if isinstance(value, Tensor):
        value = value.detach()
        return value.clone() if value.device.type == "cpu" else value.cpu()
    return deepcopy(value)


@runtime_checkable
class AsyncStager(Protocol):
    """Copies a state before it is written."""

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether `synchronize_staging` is called once the save has begun."""
        return self._synchronize_after_execute

    def stage(self, state_dict: dict[str, Any]) -> Future[dict[str, Any]] | dict[str, Any]:
        """The copy, or what gives it later."""
        raise NotImplementedError(f"{type(self).__name__} must implement stage method")

    def synchronize_staging(self) -> None:
        """Wait until the state may be changed."""

    def close(self) -> None:
        """Give back what it holds."""


class BlockingAsyncStager(AsyncStager):
    """Copies before async_save returns."""

    _synchronize_after_execute = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict, self.type_check = cache_staged_state_dict, type_check
        self.state_dict_cache: dict[str, Any] | None = None

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        staged: dict[str, Any] = copied(state_dict)
        return staged

    def synchronize_staging(self) -> None:
        """Nothing: it is done."""

    def close(self) -> None:
        """Nothing: it holds nothing."""


@dataclass
class StagingOptions:
    """How DefaultStager copies; memory here is neither pinned nor shared."""

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class DefaultStager(AsyncStager):
    """Copies in a thread, unless the options say not to."""

    def __init__(self, config: StagingOptions | None = None) -> None:
        self._config = config or StagingOptions()
        self._thread = ThreadPoolExecutor(1) if self._config.use_async_staging else None
        self._staging: Future[dict[str, Any]] | None = None

    def stage(
        self, state_dict: dict[str, Any], **_: Any
    ) -> Future[dict[str, Any]] | dict[str, Any]:
        if self._thread is None:
            staged: dict[str, Any] = copied(state_dict)
            return staged
        self._staging = self._thread.submit(copied, state_dict)
        return self._staging

    def synchronize_staging(self) -> None:
        if self._staging is not None:
            self._staging.result()

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown()
