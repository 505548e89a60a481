"""Owns the pytest plugin: every case of an operator is a test item with its id.

    from mindtorch_npu.pytest_plugin import conformance

    @conformance("aclnnFoo", golden=foo)
    def test_foo(conformance_case): ...

`-k`, `-n`, `--lf`, `-x` and JUnit work as for other tests. A case that is not judged is skipped
with its reason; an operator of which nothing is judged is one failing item.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import Any, Final

import pytest

MARK: Final = "conformance"
NOTHING: Final = "nothing-to-judge"


def conformance(*operators: str, **options: Any) -> Callable[[Any], Any]:
    """Mark a test that takes `conformance_case`; options are those of `mindtorch_npu.check`:
    golden, level, dtypes, home, simulator, device, seed, timeout."""
    unknown = set(options) - _OPTIONS
    if unknown:
        raise TypeError(f"conformance(…): no option {sorted(unknown)[0]!r}; there are "
                        f"{', '.join(sorted(_OPTIONS))}")  # fmt: skip
    mark: Callable[[Any], Any] = getattr(pytest.mark, MARK)(*operators, **options)
    return mark


_OPTIONS: Final = frozenset((
    "golden", "level", "dtypes", "home", "simulator", "device", "seed", "timeout",
))  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker, for --strict-markers."""
    config.addinivalue_line("markers", f"{MARK}(operators, **options): one item for each case")


def pytest_generate_tests(metafunc: Any) -> None:
    """One item for each case of the marked operators."""
    mark = metafunc.definition.get_closest_marker(MARK)
    if mark is None or "conformance_case" not in metafunc.fixturenames:
        return
    bench = _bench(mark)
    ids = [case.id for case in bench.cases()] or [NOTHING]
    metafunc.parametrize("conformance_case", ids, ids=ids, indirect=True)


@pytest.fixture
def conformance_case(request: Any) -> Any:
    """The result of one case; None where nothing of the operators can be judged."""
    mark = request.node.get_closest_marker(MARK)
    return None if request.param == NOTHING else _bench(mark).run(request.param)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> None:
    """Fail with the cause where the case does, before the test's own body runs."""
    if "conformance_case" not in pyfuncitem.funcargs:
        return
    result = pyfuncitem.funcargs["conformance_case"]
    if result is None:
        names = ", ".join(pyfuncitem.get_closest_marker(MARK).args)
        pytest.fail(f"{names}: no case can be judged: there is no reference", pytrace=False)
    if result.failing:
        from .api import failure

        pytest.fail(failure(result).text(), pytrace=False)
    if result.verdict != "PASS":
        pytest.skip(f"{result.verdict}: {result.reason}")


class Workbench:
    """The worker of one set of options, started at the first use and kept for the session."""

    def __init__(self, operators: tuple[str, ...], options: dict[str, Any]) -> None:
        from .conformance.run.lane import Lane
        from .conformance.run.process import Setup

        self.operators, self.options = operators, options
        self.seed = int(options.get("seed", 0))
        home, device = options.get("home"), options.get("device", "npu:0")
        simulator, timeout = bool(options.get("simulator")), float(options.get("timeout", 60.0))
        setup = Setup(device, str(home) if home else None, simulator, timeout=timeout)
        self.lane = Lane(setup)
        with self._references():
            self.environment = self.lane.open()
        atexit.register(self.lane.close)

    def _references(self) -> Any:
        from .api import references

        return references(self.options.get("golden", ()))

    def cases(self) -> list[Any]:
        """The cases of the operators at the level."""
        from .conformance.cases.cases import CaseFilter
        from .conformance.run import engine

        plan = CaseFilter(self.options.get("level", "quick"), tuple(self.options.get("dtypes", ())))
        with self._references():
            names = engine.find_ops(self.operators, (), False)
            request = engine.RunRequest(names, plan, self.lane.setup, self.seed)
            selected = list(engine.select(request, self.environment))
        return [c for c in selected if not c.form.startswith("contract")]

    def run(self, case: str) -> Any:
        """The result of one case, on a worker that may die of it."""
        from .conformance.record.result import Result
        from .conformance.run.process import Batch

        with self._references():
            outcomes = list(self.lane.run(Batch((case,), self.seed)))
        return next(r for r in outcomes if isinstance(r, Result))


_BENCHES: dict[str, Workbench] = {}


def _bench(mark: Any) -> Workbench:
    key = repr((mark.args, sorted(mark.kwargs.items(), key=lambda item: item[0])))
    if key not in _BENCHES:
        _BENCHES[key] = Workbench(mark.args, dict(mark.kwargs))
    return _BENCHES[key]
