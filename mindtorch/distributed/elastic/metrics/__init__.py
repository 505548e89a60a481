"""Owns metrics: numbers of groups' names, given to the handlers that a program configures."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NamedTuple

from typing_extensions import deprecated

__all__ = [
    "ConsoleMetricHandler", "MetricData", "MetricHandler", "MetricStream", "MetricsConfig",
    "NullMetricHandler", "configure", "getStream", "get_elapsed_time_ms", "initialize_metrics",
    "prof", "profile", "publish_metric", "put_metric",
]  # fmt: skip


class MetricData(NamedTuple):
    """A number of a group at a time."""

    timestamp: float
    group_name: str
    name: str
    value: int


class MetricsConfig:
    """Parameters by name, which nothing reads."""

    __slots__ = ["params"]

    def __init__(self, params: dict[str, str] | None = None) -> None:
        self.params = {} if params is None else params


class MetricHandler(ABC):
    """What numbers are given to."""

    @abstractmethod
    def emit(self, metric_data: MetricData) -> Any:
        """Take a number."""


class ConsoleMetricHandler(MetricHandler):
    """Prints numbers."""

    def emit(self, metric_data: MetricData) -> None:
        timestamp, group, name, value = metric_data
        print(f"[{timestamp}][{group}]: {name}={value}")


class NullMetricHandler(MetricHandler):
    """Takes numbers and does nothing."""

    def emit(self, metric_data: MetricData) -> None:
        """Nothing."""


class MetricStream:
    """The handler of a group."""

    def __init__(self, group_name: str, handler: MetricHandler) -> None:
        self.group_name, self.handler = group_name, handler

    def add_value(self, metric_name: str, metric_value: int) -> None:
        """Give the handler a number."""
        self.handler.emit(MetricData(time.time(), self.group_name, metric_name, metric_value))


# By groups; None has the handler of groups that have none of their own.
_handlers: dict[str | None, MetricHandler] = {None: NullMetricHandler()}


def configure(handler: MetricHandler, group: str | None = None) -> None:
    """Give a group its handler; without one, those that have none."""
    _handlers[group] = handler


def getStream(group: str) -> MetricStream:  # noqa: N802 - torch's name
    """Where the numbers of a group go."""
    return MetricStream(group, _handlers.get(group, _handlers[None]))


def put_metric(metric_name: str, metric_value: int, metric_group: str = "torchelastic") -> None:
    """Give a group's handler a number."""
    getStream(metric_group).add_value(metric_name, metric_value)


@deprecated(
    "Deprecated, use `put_metric(metric_group)(metric_name, metric_value)` instead",
    category=FutureWarning,
)
def publish_metric(metric_group: str, metric_name: str, metric_value: int) -> None:
    """As `put_metric`, the group first."""
    put_metric(metric_name, metric_value, metric_group)


def get_elapsed_time_ms(start_time_in_seconds: float) -> int:
    """Whole milliseconds since a time."""
    return int((time.time() - start_time_in_seconds) * 1000)


def _measured(name: str, fn: Callable[..., Any], put: Callable[..., None]) -> Callable[..., Any]:
    """`fn`, with numbers of its successes, failures and milliseconds."""

    @wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        start = time.time()
        try:
            result = fn(*args, **kwargs)
        except Exception:
            put(f"{name}.failure", 1)
            raise
        else:
            put(f"{name}.success", 1)
        finally:
            put(f"{name}.duration.ms", get_elapsed_time_ms(start))
        return result

    return wrapper


def prof(fn: Callable[..., Any] | None = None, group: str = "torchelastic") -> Callable[..., Any]:
    """A decorator: numbers of calls, by the function's class or module and name."""

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        name, module = function.__qualname__, function.__module__
        if "." not in name and module:
            name = f"{module.split('.')[-1]}.{name}"
        return _measured(name, function, partial(put_metric, metric_group=group))

    return wrap(fn) if fn else wrap


@deprecated("Deprecated, use `@prof` instead", category=FutureWarning)
def profile(group: Any = None) -> Callable[..., Any]:
    """As `prof`, by the function's name alone."""
    return lambda function: _measured(function.__name__, function, partial(publish_metric, group))


def initialize_metrics(cfg: MetricsConfig | None = None) -> None:
    """Nothing."""
