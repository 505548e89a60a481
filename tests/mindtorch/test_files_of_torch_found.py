"""What torch's own test files have found, each as small as it gets."""

import numpy as np
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
    # Of shapes that no test calls with 1 for a dimension: a call that is planned takes True for it.
    agree(lambda t: t.zeros(3, 3, 7, 2).argmax(True), text=False)
    agree(lambda t: t.zeros(3, 3, 7, 2).softmax(True), text=False)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp", "softmax", "sum", "cummax"])
def test_a_dimension_that_must_be_given_may_be_an_axis(name):
    def run(t):
        x = t.arange(6.0).reshape(2, 3)
        given = [getattr(t, name)(x, axis=0), getattr(x, name)(axis=1)]
        return [tuple(v) if isinstance(v, tuple) else v for v in given]

    agree(run, digits=5)


def test_numpys_name_of_the_operand_is_taken():
    agree(lambda t: t.sum(a=t.ones(2, 2), axis=0, keepdims=True))


OUTS = [
    ("zeros", ((2,),)), ("ones", ((2,),)), ("empty", ((2,),)), ("full", ((2,), 1.5)),
    ("arange", (3,)), ("linspace", (0, 1, 3)), ("logspace", (0, 1, 3)), ("eye", (2,)),
    ("range", (0, 3)), ("rand", (2,)), ("randn", (2,)), ("randint", (5, (2,))), ("randperm", (4,)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), OUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16"])
def test_out_decides_a_factorys_dtype(name, args, dtype):
    def run(t, **options):
        t.manual_seed(0)
        out = t.empty(0, dtype=getattr(t, dtype))
        made = getattr(t, name)(*args, out=out, **options)
        return made is out, made.dtype, made.shape, made if name != "empty" else None

    agree(run, digits=3)
    agree(lambda t: run(t, dtype=t.float32)[1:3])


def test_what_fits_out_keeps_its_shape():
    def run(t, make):
        return make(t, t.zeros(3, 3, 10).permute(2, 0, 1))

    agree(lambda t: run(t, lambda t, out: t.arange(90, out=out)))
    agree(lambda t: run(t, lambda t, out: t.linspace(0, 89, 90, out=out)), digits=5)


def test_channels_last_stays_where_all_that_is_joined_has_it():
    def run(t):
        last, usual = t.ones(2, 3, 4, 4).to(memory_format=t.channels_last), t.ones(2, 3, 4, 4)
        deep = t.ones(2, 3, 4, 4, 2).to(memory_format=t.channels_last_3d)
        lists = [last, last], [last, usual], [usual, usual], [deep, deep], [t.ones(0), last]
        return [t.cat(list(parts), dim).stride() for parts in lists for dim in (0, 1)]

    agree(run)


@pytest.mark.parametrize("dim", [0, 1, 3])
def test_old_empty_tensors_are_joined_along_any_dimension(dim):
    agree(lambda t: t.cat([t.ones(0), t.ones(0)], dim))


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
@pytest.mark.parametrize("wrong", ["tensor", "empty", "generator", "number"])
def test_stacks_take_lists_of_tensors(name, wrong):
    def run(t):
        x = t.ones(2, 3)
        given = {"tensor": x, "empty": (), "generator": (x for _ in "ab"), "number": 42}
        return getattr(t, name)(given[wrong])

    agree(run)


LITERALS = {
    "a word": lambda t: t.tensor([0, "torch"]),
    "a circle": lambda t: t.tensor(circle()),
    "a complex number": lambda t: t.tensor([1j], dtype=t.float32),
    "an object with a value": lambda t: t.tensor([Half()], dtype=t.float64),
    "no buffer": lambda t: t.frombuffer([1], dtype=t.uint8),
    "nothing of a buffer": lambda t: t.frombuffer(bytearray(4), dtype=t.int16, count=0),
    "a capsule": lambda t: t.asarray(t.utils.dlpack.to_dlpack(t.ones(2))),
    "a numpy scalar": lambda t: t.asarray(np.float32(2), copy=False),
    "another dtype": lambda t: t.asarray(t.ones(2), dtype=t.float64, copy=False),
    "a copy with a gradient": lambda t: (
        t.asarray(t.ones(2, requires_grad=True) * 2, copy=True).requires_grad
    ),
    "bounds past float32": lambda t: t.empty(3).uniform_(-1e40, 1),
    "a span past float32": lambda t: t.empty(3).uniform_(-3e38, 3e38),
    "whole numbers": lambda t: t.empty(3, dtype=t.int64).uniform_(0, 1),
    "a truth": lambda t: t.empty(3, dtype=t.bool).random_(0, 3),
    "a byte": lambda t: t.empty(3, dtype=t.uint8).random_(-1, 300),
    "halves of a permutation": lambda t: t.randperm(3000, dtype=t.float16),
    "truths of a permutation": lambda t: t.randperm(2, dtype=t.bool),
    "devices of grids": lambda t: t.meshgrid(t.ones(1), t.ones(2, device="meta")),
    "repeats of another length": lambda t: t.ones(2, 2).repeat_interleave(t.tensor([1, 2, 3]), 0),
    "repeats of two dimensions": lambda t: t.ones(2, 2).repeat_interleave(t.ones(3, 3).int(), 0),
    "repeats that are no counts": lambda t: t.ones(2, 2).repeat_interleave(t.ones(2), 0),
}


class Half:
    def __float__(self):
        return 0.5


def circle():
    outer = [0]
    outer.append(outer)
    return outer


@pytest.mark.parametrize("name", LITERALS)
def test_what_makes_tensors_takes_and_refuses_what_torch_does(name):
    agree(LITERALS[name])
