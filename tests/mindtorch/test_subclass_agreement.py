"""Subclasses of Tensor, and functions that users write: what they see and give, as in torch."""

import importlib

import pytest

import mindtorch
from tests.mindtorch.agreement import agree

torch = pytest.importorskip("torch", reason="torch 2.13 is the reference")

# Methods that no row makes, with arguments: what they give, and who is asked.
CALLS = {
    "to": ("float64",), "double": (), "contiguous": (), "clone": (), "detach": (),
    "new_zeros": ((2,),), "new_tensor": ([1.0],), "requires_grad_": (), "unique": (), "cpu": (),
    "type": ("int32",), "tolist": (), "size": (), "stride": (), "dim": (), "numel": (),
    "split": (1,), "is_contiguous": (), "is_floating_point": (), "numpy": (), "element_size": (),
}  # fmt: skip


def subclass(lib, seen):
    class Watched(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    return lib.arange(4.0).reshape(2, 2).as_subclass(Watched)


@pytest.mark.parametrize("name", CALLS)
def test_a_method_asks_the_class_and_gives_its_kind(name):
    def call(lib, arguments):
        seen = []
        x = subclass(lib, seen)
        result = getattr(x, name)(*(getattr(lib, str(a), a) for a in arguments))
        first = result[0] if isinstance(result, tuple) and name == "split" else result
        return type(first).__name__, seen

    theirs, ours = call(torch, CALLS[name]), call(mindtorch, CALLS[name])
    assert ours == theirs


@pytest.mark.parametrize("name", ["T", "mT", "data", "real", "grad"])
def test_a_property_that_is_a_tensor_is_of_the_class(name):
    def kind(lib):
        x = subclass(lib, [])
        if name == "grad":
            x = x.clone().requires_grad_()
            (x * 2).sum().backward()
        return type(getattr(x, name)).__name__

    assert kind(mindtorch) == kind(torch)


def test_a_subclass_calls_the_method_that_it_replaces():
    class Own(mindtorch.Tensor):
        def to(self, *args):
            return super().to(*args).mul(2)

    x = mindtorch.ones(2).as_subclass(Own).to(mindtorch.float64)
    assert type(x) is Own
    assert x.tolist() == [2, 2]


def test_what_is_differentiable_once_says_so_when_it_is_differentiated_twice():
    def twice(lib):
        written = importlib.import_module(lib.__name__ + ".autograd.function")

        class Product(written.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_backward(x, y)
                return x * y

            @staticmethod
            @written.once_differentiable
            def backward(ctx, grad):
                x, y = ctx.saved_tensors
                return grad * y, grad * x

        x, y = (lib.tensor(v, requires_grad=True) for v in ([2.0, 3.0], [4.0, 5.0]))
        (slope,) = lib.autograd.grad((Product.apply(x, y) ** 2).sum(), x, create_graph=True)
        assert slope.tolist() == [64, 150]
        slope.sum().backward()

    agree(twice)


def test_a_hook_after_accumulation_returns_nothing():
    def hooked(lib):
        x = lib.ones(2, requires_grad=True)
        x.register_post_accumulate_grad_hook(lambda p: p.data)
        x.sum().backward()

    agree(hooked)


def test_where_leaves_end_is_named_as_in_torch():
    agree(lambda lib: (lib.ones(1, requires_grad=True) * 2).grad_fn.next_functions[0][0].name())


@pytest.mark.parametrize("name", ["max", "where", "clamp", "sum", "stack", "einsum"])
def test_a_class_that_is_no_tensor_is_handed_torchs_own_function(name):
    def run(lib):
        seen = []

        class Value:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append((func is getattr(lib, name), len(args), types == (Value,)))
                return "answered"

        v = Value()
        calls = {"max": (v, v), "where": (v, v, v), "clamp": (v, 0, 1), "sum": (v,),
                 "stack": ([v, v],), "einsum": ("i,j", v, v)}  # fmt: skip
        return getattr(lib, name)(*calls[name]), seen

    agree(run)


@pytest.mark.parametrize("name", ["dropout", "interpolate", "cross_entropy", "normalize", "topk"])
def test_a_function_written_in_python_is_handed_over_whole(name):
    def run(lib):
        class Value:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func.__name__

        v = Value()
        calls = {"dropout": (v,), "interpolate": (v, 3), "cross_entropy": (v, v),
                 "normalize": (v,), "topk": (v, 2)}  # fmt: skip
        home = lib if name == "topk" else lib.nn.functional
        return getattr(home, name)(*calls[name])

    agree(run)
