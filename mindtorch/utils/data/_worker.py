"""Owns worker processes of a DataLoader: their loop, their seeds, their queues, their errors."""

from __future__ import annotations

import multiprocessing
import os
import queue
import random
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import mindtorch

from ..._functional.sharing import send_copies
from ..._tensor.tensor import Tensor
from ...nn.parameter import Parameter
from ._fetch import Fetcher

_STATUS_CHECK_SECONDS = 5.0


@dataclass(frozen=True)
class WorkerInfo:
    """What a dataset's code can ask about the worker that it runs in."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four words of 32 bits for numpy's generator in a worker: numpy's SeedSequence of the two."""
    words = np.random.SeedSequence([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0])
    return [int(n) for n in words.generate_state(4)]


def get_worker_info() -> WorkerInfo | None:
    """Gives the present worker's WorkerInfo; None in the main process."""
    return _info


class _Lines(str):
    """A text whose repr is itself: a KeyError's lines stay lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass
class WorkerError:
    """An exception on its way from a worker to the main process."""

    kind: type[BaseException]
    text: str
    worker: int

    def reraise(self) -> None:
        """Raises the worker's exception, with the worker's traceback in its message."""
        message = f"Caught {self.kind.__name__} in DataLoader worker process {self.worker}.\n"
        message += f"Original {self.text}"
        if self.kind is KeyError:  # whose text is the repr of what it holds
            raise KeyError(_Lines(message))
        try:
            error = self.kind(message)
        except TypeError:  # the class wants other arguments than a message
            error = RuntimeError(message)
        raise error


class _End:
    """Says that a worker's iterable dataset is at its end."""


def _work(
    worker: int,
    count: int,
    base_seed: int,
    settings: tuple[Any, ...],
    init: Any,
    tasks: Any,
    results: Any,
) -> None:
    """A worker's loop: (number, index) in, (number, worker, batch) out, None to stop."""
    global _info
    dataset = settings[0]
    send_copies(Tensor, Parameter)  # batches are read after an early end, too
    seed = base_seed + worker
    random.seed(seed)
    mindtorch.manual_seed(seed)
    np.random.seed(_generate_state(base_seed, worker))
    _info = WorkerInfo(worker, count, seed, dataset)
    fetcher, failed = None, None
    try:
        if init is not None:
            init(worker)
        fetcher = Fetcher(*settings)
    except Exception as error:
        failed = _captured(error, worker)
    try:
        while (task := _next(tasks)) is not None:
            number, index = task
            if number == _RESET:
                fetcher = Fetcher(*settings)
                continue
            results.put((number, worker, failed or _answer(fetcher, index, worker)))
    except KeyboardInterrupt:  # of the whole terminal: the main process tells of it
        results.cancel_join_thread()


_RESET = -1  # a number of no batch


def _next(tasks: Any) -> Any:
    """The next task; None, too, once the main process is gone, which nobody would say."""
    parent: Any = multiprocessing.parent_process()
    while True:
        try:
            return tasks.get(timeout=_STATUS_CHECK_SECONDS)
        except queue.Empty:
            if not parent.is_alive():
                os._exit(1)  # what is still to be sent has no reader


def _answer(fetcher: Any, index: Any, worker: int) -> Any:
    try:
        return fetcher.fetch(index)
    except StopIteration:
        return _End()
    except Exception as error:
        return _captured(error, worker)


def _captured(error: Exception, worker: int) -> WorkerError:
    text = "".join(traceback.format_exception(*sys.exc_info()))
    return WorkerError(type(error), text, worker)


class Workers:
    """The processes of one loader; gives batches in order."""

    def __init__(self, loader: Any, seed: int) -> None:
        context: Any = loader.multiprocessing_context or multiprocessing
        if isinstance(context, str):
            context = multiprocessing.get_context(context)
        self.count = loader.num_workers
        self.ahead = loader.num_workers * (loader.prefetch_factor or 2)
        self.timeout = loader.timeout
        self.results = context.Queue()
        self.tasks = [context.Queue() for _ in range(self.count)]
        settings = (
            loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last,
            loader._dataset_kind == 1,
        )  # fmt: skip
        self.sent = 0  # goes on over epochs, so that late answers to an earlier one are known
        self.processes: list[Any] = []
        self._owner = os.getpid()
        init = loader.worker_init_fn
        try:
            for i, tasks in enumerate(self.tasks):
                args = (i, self.count, seed, settings, init, tasks, self.results)
                self._start(context, args)
        except BaseException:
            self.close()
            raise

    def _start(self, context: Any, args: tuple[Any, ...]) -> None:
        process = context.Process(target=_work, args=args, daemon=True)
        self.processes.append(process)
        process.start()

    def reset(self) -> None:
        """Starts iterable datasets again, for the next epoch of persistent workers."""
        for tasks in self.tasks:
            tasks.put((_RESET, None))

    def batches(self, indices: Iterator[Any]) -> Iterator[Any]:
        """Gives the batches of `indices` in order, keeping `ahead` of them in work."""
        live = set(range(self.count))
        owner: dict[int, int] = {}
        ready: dict[int, Any] = {}
        last, turn = self.sent, 0

        def send() -> bool:
            nonlocal turn
            if not live:
                return False
            try:
                index = next(indices)
            except StopIteration:
                return False
            while turn % self.count not in live:
                turn += 1
            worker = turn % self.count
            turn += 1
            owner[self.sent] = worker
            self.tasks[worker].put((self.sent, index))
            self.sent += 1
            return True

        for _ in range(self.ahead):
            if not send():
                break
        while last < self.sent:
            while last not in ready:
                number, worker, value = self._receive()
                if number in owner:  # an answer to an epoch that was left early has no owner
                    ready[number] = value
            value = ready.pop(last)
            worker = owner.pop(last)
            last += 1
            if isinstance(value, _End):
                live.discard(worker)
                send()
                continue
            send()
            if isinstance(value, WorkerError):
                value.reraise()
            yield value

    def _receive(self) -> Any:
        waited = 0.0
        while True:
            try:
                return self.results.get(timeout=self.timeout or _STATUS_CHECK_SECONDS)
            except queue.Empty:
                waited += self.timeout or _STATUS_CHECK_SECONDS
            dead = [process.pid for process in self.processes if not process.is_alive()]
            if dead:
                pids = ", ".join(str(pid) for pid in dead)
                raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly")
            if self.timeout:
                raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds")

    def close(self) -> None:
        """Stops the processes; harmless when repeated, and in a fork of the process they are of."""
        if self._owner != os.getpid():
            return
        self._owner = 0
        try:
            self._stop()
        finally:  # an interrupt may have left some that know of no end
            for process in self.processes:
                if process.is_alive():
                    process.terminate()
                    process.join()
            for each in (self.results, *self.tasks):
                each.cancel_join_thread()
                each.close()

    def _stop(self) -> None:
        alive = [process.is_alive() for process in self.processes]
        for tasks, works in zip(self.tasks, alive, strict=False):
            if works:
                tasks.put(None)
        for process, works in zip(self.processes, alive, strict=True):
            if works:  # else an interrupt came before its start, or it ended by itself
                process.join(timeout=_STATUS_CHECK_SECONDS)

    def __del__(self) -> None:
        if getattr(self, "_owner", 0):
            self.close()
