"""Owns torch's base class of tests, and the decorators that make one test many."""
# ruff: noqa: N802, N803, N816, PT009, PT027

from __future__ import annotations

import os
import random
import sys
import unittest
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import getfile
from itertools import product
from typing import Any

import numpy as np

import mindtorch
from mindtorch.autograd import gradcheck, gradgradcheck

from .._comparison import assert_equal
from .._creation import make_tensor
from .._utils import freeze_rng_state

__all__ = [
    "IS_CI", "IS_LINUX", "IS_MACOS", "IS_WINDOWS", "SEED", "TEST_CUDA", "TEST_NUMPY",
    "TEST_WITH_ROCM", "TestCase", "freeze_rng_state", "gradcheck", "gradgradcheck",
    "instantiate_parametrized_tests", "make_tensor", "parametrize", "run_tests",
    "set_default_dtype", "set_rng_seed", "slowTest", "subtest",
]  # fmt: skip
SEED = 1234
IS_LINUX, IS_WINDOWS = sys.platform == "linux", sys.platform == "win32"
IS_MACOS, IS_CI = sys.platform == "darwin", bool(os.environ.get("CI"))
TEST_NUMPY, TEST_CUDA, TEST_WITH_ROCM = True, False, False
slowTest = unittest.skipUnless(os.environ.get("PYTORCH_TEST_WITH_SLOW") == "1", "test is slow")


def set_rng_seed(seed: int | None = None) -> None:
    """Seed every generator, by SEED where nothing else is asked for."""
    seed = SEED if seed is None else seed
    mindtorch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


@contextmanager
def set_default_dtype(dtype: mindtorch.dtype) -> Iterator[None]:
    """Inside, floating tensors are of another dtype."""
    before = mindtorch.get_default_dtype()
    mindtorch.set_default_dtype(dtype)
    try:
        yield
    finally:
        mindtorch.set_default_dtype(before)


def run_tests(argv: Sequence[str] | None = None) -> None:
    """Run the tests of the program, as unittest.main does."""
    unittest.main(argv=list(sys.argv if argv is None else argv))


class TestCase(unittest.TestCase):
    """A test that compares tensors, numbers and containers of them by values.

    Each begins with the same seed. An error says how to run its test alone, unless
    PYTORCH_PRINT_REPRO_ON_FAILURE is 0.
    """

    __test__ = False  # itself has no tests
    precision = rel_tol = 0.0
    maxDiff = None

    def __init__(self, methodName: str = "runTest") -> None:
        super().__init__(methodName)
        test = getattr(self, methodName, None)
        if test is not None and os.environ.get("PYTORCH_PRINT_REPRO_ON_FAILURE", "1") == "1":
            setattr(self, methodName, self._with_repro(test))

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__test__ = True

    def _with_repro(self, test: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                return test(*args, **kwargs)
            except unittest.SkipTest:
                raise
            except Exception as error:
                if error.args:
                    file, name = os.path.basename(getfile(type(self))), type(self).__name__
                    error.args = (
                        f"{error.args[0]}\n\nTo execute this test, run the following from the base"
                        f" repo dir:\n    python {file} {name}.{self._testMethodName}\n\nThis"
                        " message can be suppressed by setting PYTORCH_PRINT_REPRO_ON_FAILURE=0",
                        *error.args[1:],
                    )
                raise

        return run

    def setUp(self) -> None:
        """Seed the generators."""
        set_rng_seed()

    def assertEqual(
        self, x: Any, y: Any, msg: Any = None, *, atol: float | None = None,
        rtol: float | None = None, equal_nan: bool = True, exact_dtype: bool = True,
        exact_device: bool = False, exact_layout: bool = False, exact_stride: bool = False,
        exact_is_coalesced: bool = False,
    ) -> None:  # fmt: skip
        """AssertionError unless both are close, as their dtypes are: 1, 1.0 and tensor(1) are."""
        if (rtol is None) != (atol is None):
            absent = "rtol" if rtol is None else "atol"
            raise ValueError(
                f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {absent}."
            )
        tolerances = None if rtol is None or atol is None else (rtol, atol)
        message = msg
        if isinstance(msg, str) and self.longMessage:
            message = lambda text: f"{text}\n{msg}"  # noqa: E731
        assert_equal(x, y, tolerances, equal_nan, exact_device, exact_dtype, exact_layout,
                     exact_stride, message)  # fmt: skip

    def assertNotEqual(self, first: Any, second: Any, msg: Any = None, **options: Any) -> None:
        """AssertionError where both are close."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(first, second, msg, **options)

    def assertExpectedInline(self, actual: str, expect: str, skip: int = 0) -> None:
        """AssertionError unless a text is the expected one."""
        self.assertMultiLineEqual(expect, actual)


class subtest:  # noqa: N801 - torch's name
    """The values of one test with a name of its own, and decorators for it alone."""

    def __init__(
        self, arg_values: Any, name: str | None = None,
        decorators: Iterable[Callable[..., Any]] | None = None,
    ):  # fmt: skip
        self.arg_values, self.name, self.decorators = arg_values, name, list(decorators or ())


class parametrize:  # noqa: N801 - torch's name
    """A test for each of some values of an argument, or of several (`"x, y"`).

    Names end with arguments and values (`test_f_x_1`), with what `name_fn` gives of the values or
    with a subtest's name. Above another one, each of its values is combined with all of the other.
    """

    def __init__(
        self, arg_str: str, arg_values: Iterable[Any], name_fn: Callable[..., str] | None = None
    ):
        self.arg_names = [name.strip() for name in arg_str.split(",") if name]
        self.arg_values, self.name_fn = arg_values, name_fn

    def __call__(self, test: Any) -> Any:
        test.parametrizers = [self, *getattr(test, "parametrizers", ())]
        return test

    def cases(self, test: Callable[..., Any]) -> list[tuple[str, dict[str, Any], list[Any]]]:
        """(end of the name, arguments, decorators) of each; RuntimeError for other counts."""
        cases = []
        for at, value in enumerate(self.arg_values):
            alone = value if isinstance(value, subtest) else subtest(value)
            values = list(alone.arg_values) if len(self.arg_names) > 1 else [alone.arg_values]
            if len(values) != len(self.arg_names):
                raise RuntimeError(
                    f"Expected # values == # arg names, but got: {len(values)} values and"
                    f' {len(self.arg_names)} names for test "{test.__name__}"'
                )
            name = alone.name or (self.name_fn(*values) if self.name_fn else None)
            name = name or "_".join(map(_part, self.arg_names, values, [at] * len(values)))
            arguments = dict(zip(self.arg_names, values, strict=True))
            cases.append((name, arguments, alone.decorators))
        if not cases:
            raise ValueError(
                f"{test}: An empty arg_values was passed to @parametrize. Note that this may"
                " result from reuse of a generator."
            )
        return cases


def _part(name: str, value: object, at: int) -> str:
    """What an argument adds to a test's name."""
    if isinstance(value, mindtorch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, mindtorch.device):
        return str(value)
    if isinstance(value, int | float | str):
        return f"{name}_{str(value).replace('.', '_')}"
    return f"{name}{at}"


def _with(test: Callable[..., Any], arguments: dict[str, Any]) -> Callable[..., Any]:
    @wraps(test)
    def call(self: Any) -> None:
        test(self, **arguments)

    return call


def instantiate_parametrized_tests(generic_cls: type) -> type:
    """Put a class's parametrized tests in place of each; RuntimeError for an argument twice."""
    for name in dir(generic_cls):
        test = getattr(generic_cls, name)
        parametrizers = getattr(test, "parametrizers", None)
        if parametrizers is None:
            continue
        delattr(generic_cls, name)
        names = [n for p in parametrizers for n in p.arg_names]
        twice = {n for n in names if names.count(n) > 1}
        if twice:
            raise RuntimeError(
                "Parametrization over the same parameter by multiple parametrization decorators is"
                f' not supported. For test "{name}", the following parameters are handled multiple'
                f" times: {twice}"
            )
        for cases in product(*(p.cases(test) for p in reversed(parametrizers))):
            ends = [end for end, _, _ in reversed(cases)]
            arguments = {k: v for _, values, _ in cases for k, v in values.items()}
            one = _with(test, arguments)
            for decorator in (d for _, _, decorators in cases for d in decorators):
                one = decorator(one)
            full_name = "_".join([name, *ends])
            if hasattr(generic_cls, full_name):
                raise AssertionError(f"Redefinition of test {full_name}")
            setattr(generic_cls, full_name, one)
    return generic_cls
