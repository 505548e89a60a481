"""Owns torch.accelerator.Graph: an NPUGraph by torch's device-neutral interface."""

from __future__ import annotations

from typing import Any

from .graphs import NPUGraph


class Graph:
    """Work captured from the current stream (`with stream, graph:`) and run by `replay`.

    A capture can be replayed as soon as it ends, so that `keep_graph` keeps nothing more.
    """

    def __init__(
        self, keep_graph: bool = False, *, pool: Any = None, capture_error_mode: str = "default"
    ) -> None:
        self._captured = NPUGraph()
        self.graph_pool, self.capture_error_mode = pool, capture_error_mode

    def capture_begin(self) -> None:
        """Note the current stream's work from now on; errors as NPUGraph.capture_begin has them."""
        mode = self.capture_error_mode
        self._captured.capture_begin(self.graph_pool, "global" if mode == "default" else mode)

    def capture_end(self) -> None:
        """Stop capturing."""
        self._captured.capture_end()

    def instantiate(self) -> None:
        """Nothing: a capture is ready when it ends."""

    def replay(self) -> None:
        """Run the captured work on the current stream."""
        self._captured.replay()

    def reset(self) -> None:
        """Give up the capture and its memory."""
        self._captured.reset()

    def pool(self) -> tuple[int, int]:
        """The name of this graph's memory; RuntimeError before a capture."""
        return self._captured.pool()

    def enable_debug_mode(self) -> None:
        """Nothing: `debug_dump` writes any capture."""

    def debug_dump(self, path: str) -> None:
        """Write the captured tasks to a file, as JSON."""
        self._captured.debug_dump(path)

    def __enter__(self) -> Graph:
        self.capture_begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.capture_end()
