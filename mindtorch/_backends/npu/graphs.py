"""Owns torch.npu's graphs: work captured from a stream once and replayed by one call."""

from __future__ import annotations

from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from aclnn_bindings import AclError, lib, throw_on

from . import runtime
from .streams import Stream

if TYPE_CHECKING:
    from aclnn_bindings import Stream as _Stream

# Source: the torch.cuda.CUDAGraph document; values of aclmdlRICaptureMode by acl_rt.h.
MODES: Final = {
    "global": "ACL_MODEL_RI_CAPTURE_MODE_GLOBAL",
    "thread_local": "ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL",
    "relaxed": "ACL_MODEL_RI_CAPTURE_MODE_RELAXED",
}


Handle: TypeAlias = tuple[int, int]
_handles = count(1)


def graph_pool_handle() -> Handle:
    """A new name of memory, as graphs of one pool have it."""
    return next(_handles), 0


class CapturedGraph:
    """Captured work of one stream. A replay reads and writes the memory of the capture.

    What the capture allocates comes from memory of its own, which nobody else gets before `reset`.
    """

    def __init__(self) -> None:
        self._model = 0
        self._pool = 0
        self._stream: _Stream | None = None
        self._handle: Handle | None = None

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Note the current stream's work from now on instead of running it.

        `pool` lets graphs share memory; each keeps its own here. RuntimeError on the default stream
        or for a second capture; AclError as aclmdlRICaptureBegin.
        """
        if pool is not None and not (isinstance(pool, tuple) and len(pool) == 2):
            raise TypeError(
                f"NPUGraph.capture_begin: pool must be what graph_pool_handle() or pool() gave, not"
                f" {type(pool).__name__}"
            )
        if capture_error_mode not in MODES:
            raise ValueError(
                f"NPUGraph.capture_begin: capture_error_mode {capture_error_mode!r} is unknown; "
                f"expected one of {', '.join(MODES)}"
            )
        if self._model or self._pool:
            raise RuntimeError("NPUGraph.capture_begin: this graph has a capture; make a new graph")
        stream = runtime.current_stream(None)
        if stream.default:
            raise RuntimeError(
                "NPUGraph.capture_begin: the default stream cannot be captured; use "
                "torch.npu.graph or a stream of your own"
            )
        self._handle = pool or graph_pool_handle()
        self._stream = stream
        self._pool = int(lib.mt_pool_open(stream.address))
        if not self._pool:
            throw_on(stream.device)
        try:
            _call("aclmdlRICaptureBegin", stream.handle, MODES[capture_error_mode])
        except AclError:
            self._leave()
            self.reset()
            raise
        runtime.cann().runtime.own(self)

    def capture_end(self) -> None:
        """Stop capturing. AclError when something in the capture was refused; it is gone then."""
        if not self._pool or self._model or self._stream is None:
            raise RuntimeError("NPUGraph.capture_end: capture_begin comes first")
        try:
            self._model = int(_call("aclmdlRICaptureEnd", self._stream.handle))
        except AclError:
            self._leave()
            self.reset()
            raise
        self._leave()

    def pool(self) -> Handle:
        """The name of this graph's memory; RuntimeError before a capture."""
        if self._handle is None:
            raise RuntimeError("NPUGraph.pool: there is no capture; capture first")
        return self._handle

    def replay(self) -> None:
        """Run the captured work on the current stream of its device, without waiting."""
        if not self._model or self._stream is None:
            raise RuntimeError("NPUGraph.replay: there is no capture; capture first")
        on = runtime.current_stream(self._stream.device.index)
        _call("aclmdlRIExecuteAsync", self._model, on.handle)

    def reset(self) -> None:
        """Wait for the device, then give up the capture and its memory."""
        stream, pool, model = self._stream, self._pool, self._model
        self._forget()
        if stream is None or stream.closed:
            return
        if model:
            runtime.device(stream.device.index).synchronize()
            _call("aclmdlRIDestroy", model)
        if pool and lib.mt_pool_close(stream.address, pool):
            throw_on(stream.device)

    close = reset

    def debug_dump(self, debug_path: str) -> None:
        """Write the captured tasks to a file, as JSON."""
        if not self._model:
            raise RuntimeError("NPUGraph.debug_dump: there is no capture; capture first")
        _call("aclmdlRIDebugJsonPrint", self._model, debug_path, 0)

    def _leave(self) -> None:
        if self._stream is not None and lib.mt_pool_leave(self._stream.address):
            throw_on(self._stream.device)

    def _forget(self) -> None:
        self._model = self._pool = 0
        self._stream = None

    def __del__(self) -> None:
        if getattr(self, "_pool", 0):
            self.reset()

    def __repr__(self) -> str:
        return f"<torch.npu.NPUGraph {'captured' if self._model else 'empty'}>"


class graph:  # noqa: N801 - torch's name
    """`with torch.npu.graph(g):` captures the block's work in `g`, on a stream of its own.

    The device is waited for first. Source: the torch.cuda.graph document.
    """

    def __init__(
        self,
        npu_graph: CapturedGraph,
        pool: Any = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        self._graph, self._pool, self._mode = npu_graph, pool, capture_error_mode
        self._stream = stream or Stream()

    def __enter__(self) -> None:
        runtime.device(self._stream._bound.device.index).synchronize()
        self._stream.__enter__()
        try:
            self._graph.capture_begin(self._pool, self._mode)
        except BaseException:
            self._stream.__exit__()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._graph.capture_end()
        except AclError:
            if error is None:  # else what the block raised says why
                raise
        finally:
            self._stream.__exit__()


def is_current_stream_capturing() -> bool:
    """Whether work of the calling thread's stream is being captured."""
    status, _ = _call("aclmdlRICaptureGetInfo", runtime.current_stream(None).handle)
    return bool(status)


def _call(name: str, *arguments: Any) -> Any:
    return runtime.cann().function(name)(*arguments)
