"""Owns calls of references that a person wrote: what goes wrong in one is an error of it, never a
verdict on the device. Built-in rows are not called through it.
"""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, Final

import numpy as np

from ...judge.precision import Array, numpy_dtype
from ...plurals import plural
from ...spec.errors import DeclarationError
from ..operators.kit_specs import as_numpy
from .reference import OWN_MODULE, ReferenceRefusesError

# Seconds of one call, until a worker says what a case may take.
_SECONDS: Final = 60.0
# Calls of a reference without an answer; then it is not called again.
_MOST_LATE: Final = 2
# Inputs with more elements are not evaluated a second time.
_REPEATED_ELEMENTS: Final = 1 << 20
# Sums of several threads may differ by rounding; this part of the largest element is no rounding.
_ROUNDING: Final = 1e-5
_NUMERIC: Final = "biufcV"
_CUSTOM: Final = "mindtorch_npu_custom"


class CustomReferenceError(ReferenceRefusesError):
    """A person's reference is wrong: it raises, gives no usable results, changes its inputs, ends
    the process or does not end. The message names the last lines that ran."""

    def __init__(self, cause: BaseException | str) -> None:
        if isinstance(cause, str):
            Exception.__init__(self, cause)
            self.cause: Exception = self
        else:
            lines = str(cause).splitlines() or [""]
            Exception.__init__(self, f"{type(cause).__name__}: {lines[0]}{_last_lines(cause)}")
            self.cause = cause if isinstance(cause, Exception) else self
        self.defect = True


class WrongCountError(CustomReferenceError, DeclarationError):
    """A reference gives another number of results than the header has."""


class NoAnswerError(Exception):
    """A reference ran longer than a case may."""


class Watch:
    """How long a reference may run in this process, and who is told while one does."""

    seconds: float = _SECONDS
    tell: Callable[[bool], None] | None = None


def guarded(reference: Callable[..., Any], lists: Sequence[bool], repeat: bool) -> Any:
    """The reference, whose mistakes raise CustomReferenceError; it gives a tuple: an array, a list
    of arrays (where `lists` says so) or None per result. With `repeat` it is evaluated twice."""
    late = 0

    @functools.wraps(reference)
    def checked(**arguments: Any) -> tuple[Any, ...]:
        nonlocal late
        if late >= _MOST_LATE:
            raise CustomReferenceError(
                f"it gave no answer {plural(late, 'time')}, and is not called again"
            )
        try:
            results = _results(_evaluated(reference, arguments), lists)
            if repeat and _elements(arguments) <= _REPEATED_ELEMENTS:
                _same(results, _results(_evaluated(reference, arguments), lists))
        except CustomReferenceError as error:
            late += isinstance(error.cause, NoAnswerError)
            raise
        return results

    setattr(checked, _CUSTOM, True)
    return checked


def is_custom(reference: Any) -> bool:
    """Whether a reference is a person's, which `guarded` made."""
    return bool(getattr(reference, _CUSTOM, False))


def expect(
    name: str, values: Sequence[Array | None], shape: Sequence[int] | None, dtype: str, steps: bool
) -> None:
    """CustomReferenceError where a result has another shape than is declared, or numbers that its
    dtype has not; with `steps` real values are rounded."""
    kind = numpy_dtype(dtype).kind
    for value in values:
        if value is None:
            continue
        if shape is not None and value.shape != tuple(shape):
            raise CustomReferenceError(f"it gives {name} the shape {list(value.shape)}, and the "
                                    f"declaration says {list(shape)}")  # fmt: skip
        real = value.dtype.kind == "f" and not steps
        other = (kind != "c" and value.dtype.kind == "c") or (
            kind in "iub" and real and not np.array_equal(value, np.rint(value))
        )
        if other:
            raise CustomReferenceError(f"it gives {name} as {value.dtype.name}, and the result is "
                                    f"{dtype}")  # fmt: skip


def _evaluated(reference: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """What a reference returns for copies of the arguments, which it may not change."""
    copies = {name: _copy(value) for name, value in arguments.items()}
    try:
        with _limit(), _seen():
            returned = reference(**copies)
    except CustomReferenceError:
        raise
    except (Exception, SystemExit) as error:
        raise CustomReferenceError(error) from error
    for name, value in arguments.items():
        if not _equal(value, copies[name]):
            raise CustomReferenceError(f"it changes its input {name}")
    return returned


def _copy(value: Any) -> Any:
    if isinstance(value, list):
        return [_copy(v) for v in value]
    return value.copy() if isinstance(value, np.ndarray) else value


def _equal(value: Any, other: Any) -> bool:
    if isinstance(value, list):
        return len(value) == len(other) and all(map(_equal, value, other))
    if not isinstance(value, np.ndarray):
        return True
    return value.shape == other.shape and value.tobytes() == other.tobytes()


def _elements(arguments: Mapping[str, Any]) -> int:
    flat = (
        v for value in arguments.values() for v in (value if isinstance(value, list) else [value])
    )
    return sum(v.size for v in flat if isinstance(v, np.ndarray))


def _results(returned: Any, lists: Sequence[bool]) -> tuple[Any, ...]:
    """One value for each result; CustomReferenceError for another number or kind of them."""
    several = isinstance(returned, tuple) or (isinstance(returned, list) and len(lists) > 1)
    values = tuple(returned) if several else (returned,)
    if len(values) != len(lists):
        raise WrongCountError(
            f"it gives {plural(len(values), 'result')}, the header has {len(lists)}"
        )
    if all(v is None for v in values):
        raise CustomReferenceError("it returns nothing")
    return tuple(_value(v, many) for v, many in zip(values, lists, strict=True))


def _value(value: Any, many: bool) -> Any:
    if value is None:
        return None
    if many and isinstance(value, list | tuple):
        return [_value(v, False) for v in value]
    try:
        array = np.asarray(as_numpy(value))
    except Exception as error:
        raise CustomReferenceError(error) from error
    if array.dtype.kind not in _NUMERIC:
        raise CustomReferenceError(f"it gives a {type(value).__name__} where an array is expected")
    return [array] if many else array


def _same(results: Sequence[Any], others: Sequence[Any]) -> None:
    for result, other in zip(results, others, strict=True):
        pairs = zip(result, other, strict=False) if isinstance(result, list) else ((result, other),)
        if any(not _alike(a, b) for a, b in pairs):
            raise CustomReferenceError("its results differ from run to run")


def _alike(value: Array | None, other: Array | None) -> bool:
    if value is None or other is None:
        return value is other
    if value.shape != other.shape or value.dtype != other.dtype:
        return False
    if value.dtype.kind not in "fc":
        return value.tobytes() == other.tobytes()
    finite = np.isfinite(value)
    if not np.array_equal(finite, np.isfinite(other)):
        return False
    bound = _ROUNDING * np.abs(value[finite]).max(initial=0.0)
    return bool((np.abs(value[finite] - other[finite]) <= bound).all())


@contextlib.contextmanager
def _limit() -> Iterator[None]:
    """NoAnswerError inside after the time of a call; in other threads than the first, no limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(_number: int, _frame: FrameType | None) -> None:
        raise NoAnswerError(f"no answer within {Watch.seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, Watch.seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _seen() -> Iterator[None]:
    """Tell who watches this process that a reference runs: it may end the process."""
    if Watch.tell is None:
        yield
        return
    Watch.tell(True)
    try:
        yield
    finally:
        Watch.tell(False)


def _last_lines(error: BaseException) -> str:
    """The last line of a person's own file, and the one that raised where that is another."""
    steps = list(traceback.walk_tb(error.__traceback__))
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [f for f, (frame, _) in zip(frames, steps, strict=True)
           if frame.f_globals.get("__name__", "").startswith(OWN_MODULE)]  # fmt: skip
    lines = theirs[-1:]
    if frames and frames[-1].filename not in (__file__, *(f.filename for f in lines)):
        lines.append(frames[-1])
    texts = [f"{f.filename} line {f.lineno}: {f.line}" for f in lines]
    return f" ({'; '.join(texts)})" if texts else ""
