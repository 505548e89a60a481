"""What a forward pass saved, as its gradient takes it: inputs whose elements are known before the
call, and results of the forward's reference on them."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ....judge.precision import numpy_dtype
from ....spec import content
from ....spec.errors import DeclarationError
from ....spec.row import read_by
from ....spec.values import ScalarValue, TensorValue
from ._words import *

_RESULTS: Final[WeakKeyDictionary[Draw, Any]] = WeakKeyDictionary()


def known(
    shape: str, dtype: str, low: float = -2.0, high: float = 2.0, patterns: str = "random alike"
) -> Domain:
    """A drawn tensor whose elements other parameters may read; `alike`: whole numbers, so that
    sums and scores tie."""

    def make(rng: np.random.Generator, pattern: str, draw: Draw) -> Any:
        draws = rng.uniform(low, high, resolve(shape, draw))
        return np.rint(draws) if pattern == "alike" else draws

    return content(make, patterns, dtype, shape=shape)


def read(value: Any) -> Any:
    """A parameter as the operator reads it: in the precision of its dtype."""
    if isinstance(value, list):
        return [read(v) for v in value]
    if isinstance(value, ScalarValue):
        return value.value
    if not isinstance(value, TensorValue):
        return value
    assert value.values is not None
    elements = np.asarray(value.values())
    if "float" not in value.dtype:
        return elements
    return elements.astype(numpy_dtype(value.dtype)).astype(np.float64)


def arguments(reference: Callable[..., Any], get: Callable[[str], Any], **renamed: str) -> Any:
    """What a reference takes, of the parameters that this version has; `renamed`: by what name."""
    arguments = {}
    for name in read_by(reference):
        try:
            arguments[name] = get(renamed.get(name, name))
        except DeclarationError:  # of another version
            continue
    return arguments


def saved(
    forward: Callable[[Any], Any], which: int, shape: str, dtype: str, reads: str = ""
) -> Domain:
    """Result `which` of `forward(get)`, where `get(name)` is a parameter as the operator reads it;
    of the members of a list where it stands in `several`."""

    def make(_rng: np.random.Generator, _pattern: str, draw: Any) -> Any:
        call = getattr(draw, "draw", draw)
        if call not in _RESULTS:
            _RESULTS[call] = forward(lambda name: read(call[name]))
        result = _RESULTS[call][which]
        return result[draw.index] if isinstance(result, list) else result

    alike = "a row's statistic stands there eight times" if shape.split()[-1:] == ["8"] else ""
    return content(make, "saved", dtype, shape=shape, reads=tuple(reads.split()), alike=alike)
