"""Owns torch.utils._contextlib: a base of contexts that decorate functions and generators too."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class _DecoratorContextManager:
    """A context that, called with a function, runs that inside; subclasses enter and leave."""

    def __call__(self, orig_func: F) -> F:
        return context_decorator(self.clone, orig_func)

    def __enter__(self) -> object:
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        raise NotImplementedError

    def clone(self) -> object:
        """A fresh context of the same settings; subclasses with settings say how."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The same, where `@kind` without parentheses decorates."""

    def __new__(cls, orig_func: Callable[..., object] | None = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Any:
    """`func` inside a context at each call; what a generator runs, each time that it goes on."""
    fresh = ctx if callable(ctx) else lambda: ctx
    if inspect.isclass(func):
        raise RuntimeError(
            "Cannot decorate classes; it is ambiguous whether or not only the constructor or all"
            " methods should have the context manager applied; additionally, decorating a class at"
            " definition-site will prevent use of the identifier as a conventional type. To specify"
            " which methods to decorate, decorate each of them individually."
        )
    if inspect.isgeneratorfunction(func):
        return _wrap_generator(fresh, func)

    @functools.wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with fresh():
            return func(*args, **kwargs)

    return inside


def _wrap_generator(
    ctx_factory: Callable[[], Any], func: Callable[..., Any]
) -> Callable[..., Iterator[object]]:
    @functools.wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Iterator[object]:
        generator = func(*args, **kwargs)
        send, value = generator.send, None
        try:
            while True:
                with ctx_factory():
                    answer = send(value)
                try:
                    send, value = generator.send, (yield answer)
                except GeneratorExit:
                    raise
                except BaseException as error:
                    send, value = generator.throw, error
        except StopIteration as end:
            return end.value
        finally:
            with ctx_factory():
                generator.close()

    return inside
