"""Owns the per-thread modes (grad, inference, functionalize, key sets) and their contexts."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from .._compat.warn_once import warn
from .._tensor.tensor import Tensor
from .scope import StepScope

F = TypeVar("F", bound=Callable[..., Any])


class Local(threading.local):
    """This thread's modes."""

    grad = True
    multithreading = True
    inference = False
    functionalize = 0
    include = 0
    exclude = 0
    pack: Any = ()
    autocast: Any = None
    functions: Any = ()
    profilers: Any = ()  # what is told each row's call: its name, start and end in seconds
    entered: Any = None  # the composite whose call profilers are told of, until its body begins
    dispatches: Any = ()  # the modes of torch.utils._python_dispatch, innermost last
    composite = False  # whether a mode sees what torch's C++ makes a function of
    node: Any = None  # whose formula runs, where a mode is on
    grads: Any = ()  # and on what
    dual = 0
    carries = True  # whether tangents are carried forward
    task: Any = None
    # vmap: number and batch of each level, outermost first; what draws may do; whether elements
    # draw apart; the memory of what is mapped over, by id, and whether a call has written to it.
    levels: tuple[tuple[int, int], ...] = ()
    randomness = ""
    apart = False
    batch_memory: frozenset[int] = frozenset()
    transforms: Any = ()  # torch.func's that run, outermost first: numbers of vmaps and others
    forwards: Any = ()  # the functions that torch.func.jvp and jacfwd run, outermost first
    pushing = False  # torch.func.jvp makes the product that it derives by its vectors
    derivatives = 0  # torch.func's transforms that differentiate what runs
    batch_written = False


class GradModes:
    """`active` counts, over all threads, the modes that plain calls can't ignore.

    The hot path reads this one attribute instead of thread-local state; where it is not zero the
    layers look at `LOCAL`. `MODES.active += 1` is whole: Python changes threads, and runs signal
    handlers, where calls end and loops turn. `carried` counts functions that torch.func carries
    forward.
    """

    __slots__ = ("active", "carried")

    def __init__(self) -> None:
        self.active = self.carried = 0


LOCAL = Local()
MODES = GradModes()


_CLASSES_ARE_DEPRECATED = (
    "Decorating classes is deprecated and will be disabled in future versions. You should only"
    " decorate functions or methods. To preserve the current behavior of class decoration, you can"
    " directly decorate the `__init__` method and nothing else."
)


class ContextDecorator(StepScope):
    """A context that also decorates functions, entering a fresh copy per call."""

    def clone(self) -> Any:
        return type(self)()

    def __call__(self, orig_func: F) -> F:
        import inspect

        if isinstance(orig_func, type):
            warn(_CLASSES_ARE_DEPRECATED, FutureWarning)
            orig_func.__init__ = self(orig_func.__init__)  # type: ignore[misc]
            return orig_func

        if inspect.isgeneratorfunction(orig_func):
            return _around_generator(self, orig_func)

        @functools.wraps(orig_func)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return orig_func(*args, **kwargs)

        return inside  # type: ignore[return-value]


def _around_generator(context: Any, function: Any) -> Any:
    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        step, sent = generator.send, None
        while True:
            try:
                with context.clone():
                    value = step(sent)
            except StopIteration as stop:
                return stop.value
            try:
                step, sent = generator.send, (yield value)
            except GeneratorExit:
                with context.clone():
                    generator.close()
                raise
            except BaseException as error:
                step, sent = generator.throw, error

    return inside


class set_grad_enabled(ContextDecorator):  # noqa: N801 - torch's name
    """Set whether gradients are recorded, at once; as a context, until its end."""

    __module__ = "mindtorch.autograd.grad_mode"

    def __init__(self, mode: bool):
        if not isinstance(mode, bool):
            raise TypeError(
                "set_grad_enabled(): argument 'enabled' (position 1) must be bool, not"
                f" {type(mode).__name__}"
            )
        self.mode = mode
        self.previous: bool = LOCAL.grad
        LOCAL.grad = self.mode

    def __call__(self, orig_func: F) -> F:
        LOCAL.grad = self.previous
        return super().__call__(orig_func)

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    def clone(self) -> set_grad_enabled:
        return set_grad_enabled(self.mode)

    def steps(self) -> Iterator[None]:
        try:
            LOCAL.grad = self.mode
            yield
        finally:
            LOCAL.grad = self.previous


def _carries_forward() -> bool:
    """Whether the innermost function that is differentiated is carried forward: its tangents are
    products of gradients, which it has without gradients, too."""
    levels = [level for level in LOCAL.transforms if not isinstance(level, int)]
    return bool(levels) and levels[-1] in LOCAL.forwards and LOCAL.carries


class _GradMode(ContextDecorator):
    mode: bool

    def __new__(cls, function: Any = None) -> Any:
        instance = object.__new__(cls)
        return instance if function is None else instance(function)

    def steps(self) -> Iterator[None]:
        previous = LOCAL.grad
        try:
            LOCAL.grad = _carries_forward() if MODES.carried and not self.mode else self.mode
            yield
        finally:
            LOCAL.grad = previous


class no_grad(_GradMode):  # noqa: N801 - torch's name
    """Record no gradients inside (torch.no_grad)."""

    __module__ = "mindtorch.autograd.grad_mode"
    mode = False


class enable_grad(_GradMode):  # noqa: N801 - torch's name
    """Record gradients inside (torch.enable_grad)."""

    __module__ = "mindtorch.autograd.grad_mode"
    mode = True


class inference_mode(ContextDecorator):  # noqa: N801 - torch's name
    """Record nothing inside; tensors made inside can't enter autograd later."""

    __module__ = "mindtorch.autograd.grad_mode"

    def __new__(cls, mode: Any = True) -> Any:
        instance = object.__new__(cls)
        instance.mode = True if callable(mode) else bool(mode)
        return instance(mode) if callable(mode) else instance

    mode: bool

    def clone(self) -> inference_mode:
        return inference_mode(self.mode)

    def steps(self) -> Iterator[None]:
        previous = (LOCAL.inference, LOCAL.grad)
        try:
            MODES.active += 1
            LOCAL.inference = self.mode
            LOCAL.grad = not self.mode
            yield
        finally:
            LOCAL.inference, LOCAL.grad = previous
            MODES.active -= 1


class set_multithreading_enabled(StepScope):  # noqa: N801 - torch's name
    """Whether backward may use several threads: here it uses one, whatever is said."""

    __module__ = "mindtorch.autograd.grad_mode"

    def __init__(self, mode: bool):
        self.mode = mode
        self.previous, LOCAL.multithreading = LOCAL.multithreading, mode

    def clone(self) -> set_multithreading_enabled:
        """Another of the same mode."""
        return set_multithreading_enabled(self.mode)

    def steps(self) -> Iterator[None]:
        try:
            yield
        finally:
            LOCAL.multithreading = self.previous


def is_grad_enabled() -> bool:
    """Whether calls are recorded for `backward` in this thread."""
    return LOCAL.grad


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on in this thread."""
    return LOCAL.inference


def below_autograd(lower: Callable[..., Any]) -> Callable[..., Any]:
    """`lower` run with gradients and functionalize off: a kernel made of ops."""

    def run(*args: Any) -> Tensor | tuple[Tensor, ...]:
        state = LOCAL.grad, LOCAL.functionalize
        LOCAL.grad, LOCAL.functionalize = False, 0
        try:
            return lower(*args)
        finally:
            LOCAL.grad, LOCAL.functionalize = state

    return run
