"""Owns torch.futures: a value that comes later, over Python's own."""

from __future__ import annotations

import concurrent.futures
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")

__all__ = ["Future", "collect_all", "wait_all"]


class Future(Generic[T]):
    """A value that comes later; `devices` is taken for torch's sake."""

    def __init__(self, *, devices: Sequence[Any] | None = None):
        self._future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Whether a value or an error is here."""
        return self._future.done()

    def wait(self) -> T:
        """The value, once it is here; the error, where that came."""
        return self._future.result()

    def value(self) -> T:
        """The value of a future that is done; RuntimeError for one that is not."""
        if not self.done():
            raise RuntimeError("Future::value() called before the future was completed")
        return self._future.result()

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """A future of `callback(self)`, which runs when this one is done."""
        after: Future[Any] = Future()

        def run(_: Any) -> None:
            try:
                after.set_result(callback(self))
            except Exception as error:
                after.set_exception(RuntimeError(_of_callback(error)))

        self._future.add_done_callback(run)
        return after

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Run `callback(self)` when this one is done, or now; its errors are told on stderr."""

        def run(_: Any) -> None:
            try:
                callback(self)
            except Exception as error:
                print(_of_callback(error), file=sys.stderr)

        self._future.add_done_callback(run)

    def set_result(self, result: T) -> None:
        """Give the value; RuntimeError the second time."""
        try:
            self._future.set_result(result)
        except concurrent.futures.InvalidStateError:
            raise RuntimeError(
                "Attempting to mark a completed Future as complete again. Note that a Future can"
                " only be marked completed once."
            ) from None

    def set_exception(self, result: BaseException) -> None:
        """Give an error, which `wait` raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._future.set_exception(result)


def _of_callback(error: Exception) -> str:
    """torch's words for what a callback raised, with the places it came through."""
    frames = traceback.extract_tb(error.__traceback__)[:0:-1]
    places = "".join(f"  {f.filename}({f.lineno}): {f.name}\n" for f in frames)
    return (
        "Got the following error when running the callback:"
        f" {type(error).__name__}: {error}\n\nAt:\n{places}"
    )


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of the list of futures, done when all are; the first error, where one has any."""
    together: Future[list[Future[Any]]] = Future()
    waiting = set(range(len(futures)))
    if not waiting:
        together.set_result([])

    def ended(index: int) -> None:
        waiting.discard(index)
        if waiting:
            return
        failed = (f._future.exception() for f in futures)
        error = next((e for e in failed if e is not None), None)
        if error is not None:
            together.set_exception(error)
        else:
            together.set_result(list(futures))

    for i, future in enumerate(futures):
        future.add_done_callback(lambda _, i=i: ended(i))  # type: ignore[misc]
    return together


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """The values of all, in order; the first error."""
    return [future.wait() for future in collect_all(futures).wait()]
