"""What a person's reference does wrong is an error of the reference, whatever it is."""

import sys

import numpy as np
import pytest
from mindtorch_npu.conformance.run.custom_reference import (
    CustomReferenceError,
    Watch,
    expect,
    guarded,
)

X = np.arange(6, dtype=np.float64).reshape(2, 3)
CALLS = []


def wrong(text, number=1):
    """A row of the table: what is said of a reference, and how many results its operator has."""

    def add(function):
        MISTAKES.append((function, text, number))
        return function

    return add


MISTAKES: list = []


@wrong(r"ValueError: no idea \(.*test_custom_references.py line \d+: raise ValueError")
def raises(x, n):
    raise ValueError("no idea")


@wrong("ZeroDivisionError: ")
def breaks(x, n):
    return x * (1 // (n - n))


@wrong("ModuleNotFoundError: No module named 'no_such_package'")
def needs_a_package(x, n):
    import no_such_package  # noqa: F401

    return x


@wrong("RecursionError")
def recurses(x, n):
    return recurses(x, n)


@wrong(r"MemoryError|Unable to allocate")
def takes_all_memory(x, n):
    return np.ones(1 << 50)


@wrong("SystemExit: 3")
def ends_the_process(x, n):
    sys.exit(3)


@wrong("NoAnswerError: no answer within 0.2 s")
def never_ends(x, n):
    while True:
        pass


@wrong("NoAnswerError: no answer within 0.2 s")
def sleeps(x, n):
    import time

    time.sleep(60)


@wrong("it gives 2 results, the header has 1")
def gives_two(x, n):
    return x, x


@wrong("it gives 1 result, the header has 2", 2)
def gives_one(x, n):
    return x


@wrong("it gives 0 results, the header has 1")
def gives_none_of_them(x, n):
    return ()


@wrong("it returns nothing")
def forgets_to_return(x, n):
    x + n


@wrong("it gives a str where an array is expected")
def gives_a_text(x, n):
    return "text"


@wrong("it gives a generator where an array is expected")
def gives_a_generator(x, n):
    return (v for v in x)


@wrong("ValueError: setting an array element|inhomogeneous")
def gives_a_ragged_list(x, n):
    return [[1.0], [1.0, 2.0]]


@wrong("it changes its input x")
def changes_its_input(x, n):
    x *= n
    return x + 1


@wrong("it changes its input xs")
def changes_a_member(xs, n):
    xs[1][0] = 7
    return xs[0]


@wrong("its results differ from run to run")
def draws(x, n):
    return x + np.random.default_rng().normal(size=x.shape)


@wrong("its results differ from run to run")
def counts_its_calls(x, n):
    CALLS.append(1)
    return x + len(CALLS)


@wrong("its results differ from run to run")
def changes_its_shape(x, n):
    CALLS.append(1)
    return x[: 1 + len(CALLS) % 2]


@wrong("its results differ from run to run")
def changes_its_dtype(x, n):
    CALLS.append(1)
    return x.astype(("float32", "float64")[len(CALLS) % 2])


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(Watch, "seconds", 0.2)


def arguments(function):
    return {"xs": [X.copy(), X.copy()], "n": 2} if "xs" in function.__code__.co_varnames else \
        {"x": X.copy(), "n": 2}  # fmt: skip


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("function", "text", "number"), MISTAKES, ids=lambda v: getattr(v, "__name__", "")
)
def test_each_mistake_is_said_and_no_argument_is_changed(function, text, number):
    given = arguments(function)
    before = str(given)
    with pytest.raises(CustomReferenceError, match=text):
        guarded(function, [False] * number, True)(**given)
    assert str(given) == before


def of_torch(x, n):
    torch = pytest.importorskip("torch")
    return torch.from_numpy(x).requires_grad_() * n


def of_jax(x, n):
    jax = pytest.importorskip("jax.numpy")
    return jax.asarray(x) * n


HONEST = {
    "numpy": lambda x, n: x * n,
    "torch": of_torch,
    "jax": of_jax,
    "mindtorch": lambda x, n: __import__("mindtorch").tensor(x) * n,
    "a list": lambda x, n: (x * n).tolist(),
    "a tuple of one": lambda x, n: (x * n,),
    "half of it printed": lambda x, n: print("x" * 100_000) or x * n,
    "another order of sums": lambda x, n: x * n * (1 + 1e-15 * len(CALLS)),
}


@pytest.mark.parametrize("name", HONEST)
def test_arrays_of_every_library_are_results(name):
    (result,) = guarded(HONEST[name], [False], True)(x=X.copy(), n=2)
    np.testing.assert_allclose(result, X * 2)


def test_numbers_are_results_without_dimensions():
    for number in (3, 3.0, np.float32(3), True):
        (result,) = guarded(lambda value: value, [False], True)(value=number)
        assert result.shape == ()


def test_several_results_come_as_tuple_or_list():
    for kind in (tuple, list):
        results = guarded(lambda x, kind=kind: kind((x, x + 1)), [False, False], True)(x=X)
        assert [r.shape for r in results] == [(2, 3), (2, 3)]
    assert len(guarded(lambda x: [x, x], [True], True)(x=X)[0]) == 2


def test_a_reference_of_random_results_is_evaluated_once():
    calls = []
    guarded(lambda x: calls.append(1) or x, [False], False)(x=X)
    assert len(calls) == 1


@pytest.mark.usefixtures("short")
def test_a_reference_that_never_ends_is_not_called_for_each_case():
    reference = guarded(never_ends, [False], True)
    for text in ("no answer within", "no answer within", "it gave no answer 2 times"):
        with pytest.raises(CustomReferenceError, match=text):
            reference(x=X, n=1)


@pytest.mark.parametrize(
    ("value", "shape", "dtype", "says"),
    [
        (X[:, :1], (2, 3), "float32", r"it gives y the shape \[2, 1\], and the declaration says"),
        (X * 1j, None, "float32", "it gives y as complex128, and the result is float32"),
        (X + 0.5, None, "int64", "it gives y as float64, and the result is int64"),
        (X + 0.5, None, "bool", "it gives y as float64, and the result is bool"),
    ],
)
def test_another_shape_or_dtype_than_declared_is_said(value, shape, dtype, says):
    with pytest.raises(CustomReferenceError, match=says):
        expect("y", [value], shape, dtype, False)


def test_whole_numbers_and_steps_are_results_of_integers():
    expect("y", [X, None], (2, 3), "int64", False)
    expect("y", [X + 0.5], None, "int8", True)


def test_who_watches_is_told_while_a_reference_runs(monkeypatch):
    said = []
    monkeypatch.setattr(Watch, "tell", said.append)
    with pytest.raises(CustomReferenceError):
        guarded(raises, [False], True)(x=X, n=1)
    assert said == [True, False]
