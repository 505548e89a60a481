"""What torch's own test files have found, each as small as it gets."""

import pytest
from agreement import agree

PYTHON_TYPES = {
    "randn": lambda t: t.randn((1, 2), dtype=float).dtype,
    "rand": lambda t: t.rand((1, 2), dtype=float).dtype,
    "empty": lambda t: t.empty((1, 2), dtype=bool).dtype,
    "empty_strided": lambda t: t.empty_strided((2,), (1,), dtype=int).dtype,
    "randint": lambda t: t.randint(3, (2,), dtype=int).dtype,
    "randperm": lambda t: t.randperm(3, dtype=int).dtype,
    "normal": lambda t: t.normal(0.0, 1.0, (2,), dtype=float).dtype,
    "rand_like": lambda t: t.rand_like(t.ones(2), dtype=float).dtype,
    "logspace": lambda t: t.logspace(0, 1, 2, dtype=int),
    "Linear": lambda t: t.nn.Linear(1, 1, dtype=float).weight.dtype,
    "a number": lambda t: t.empty(1, dtype=3),
}


@pytest.mark.parametrize("name", PYTHON_TYPES)
def test_a_class_of_python_passes_for_a_dtype(name):
    agree(PYTHON_TYPES[name])


@pytest.mark.parametrize("start", [[0], 0.0, [0, 1], 1])
def test_narrow_starts_at_a_whole_number(start):
    agree(lambda t: t.arange(9).reshape(3, 3).narrow(0, t.tensor(start), 1))


@pytest.mark.parametrize("name", ["add_", "sub_", "mul_"])
@pytest.mark.parametrize("sparse", [True, False])
def test_a_sparse_result_is_not_cast_to_a_lower_category(name, sparse):
    def run(t):
        target = t.tensor([1, 0, 2])
        target = target.to_sparse() if sparse else target
        return getattr(target, name)(t.tensor([0.5, 0.0, 1.0]).to_sparse())

    agree(run, text=sparse or name != "mul_")  # torch's text names another operation there


def test_sparse_matrices_alone_are_turned():
    agree(lambda t: t.ones(2, 2, 2).to_sparse().t())
    agree(lambda t: t.ones(2, 2).to_sparse(1).t())


def test_gradgradcheck_takes_gradients_of_outputs():
    def run(t):
        x = t.arange(1.0, 4.0, dtype=t.float64, requires_grad=True)
        given = t.ones(3, dtype=t.float64, requires_grad=True)
        check = t.autograd.gradgradcheck
        return check(lambda x: x**3, (x,), given), check(lambda x: x**3, x)

    agree(run)


@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
@pytest.mark.parametrize("shape", [(5, 0), (0, 3), (3, 0, 2), (0,), (0, 0)])
def test_slices_without_elements_have_no_distinct_ones(name, shape):
    for dim in range(len(shape)):
        agree(lambda t: getattr(t, name)(t.empty(shape), dim=dim))  # noqa: B023


@pytest.mark.parametrize("stable", [None, True, False])
def test_sort_may_be_told_nothing_of_stability(stable):
    agree(lambda t: tuple(t.sort(t.tensor([3, 1, 2]), stable=stable, dim=0)))


def test_a_bool_is_no_dimension():
    agree(lambda t: t.zeros(10, 2, 10).topk(4, True), text=False)
    agree(lambda t: t.zeros(3, 3).argmax(True), text=False)
    agree(lambda t: t.zeros(3, 3).softmax(True), text=False)
