"""Custom operators, good and bad, as programs that run on torch and on mindtorch alike.

Each function defines one operator in the namespace that it receives and returns the operator and
its arguments.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

PROGRAMS: dict[str, Callable[..., Any]] = {}
_TWICE = "(Tensor x) -> Tensor"


def program(build: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS[build.__name__] = build
    return build


def _numpy_twice(torch, ns):
    def twice(x):
        return torch.from_numpy(x.detach().numpy() * 2)

    twice.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    return torch.library.custom_op(f"{ns}::twice", twice, mutates_args=())


def _differentiable(op):
    op.register_autograd(lambda ctx, grad: grad * 2, setup_context=lambda ctx, inputs, output: None)
    return op


def _grad(torch, *shape):
    return torch.arange(1.0, 1 + 6).reshape(*(shape or (2, 3))).requires_grad_()


def _plain(torch):
    return _grad(torch).detach()


def _defined(torch, ns, kernel, schema=_TWICE, key="CPU"):
    torch.library.define(f"{ns}::f", schema)
    torch.library.impl(f"{ns}::f", key, kernel)
    return getattr(torch.ops, ns).f.default


@program
def complete_operator(torch, ns):
    op = _differentiable(_numpy_twice(torch, ns))
    op.register_fake(torch.empty_like)
    return op, (_grad(torch),)


@program
def complete_operator_without_gradient(torch, ns):
    op = _numpy_twice(torch, ns)
    op.register_fake(torch.empty_like)
    return op, (_plain(torch),)


@program
def no_fake(torch, ns):
    return _differentiable(_numpy_twice(torch, ns)), (_grad(torch),)


@program
def no_derivative(torch, ns):
    op = _numpy_twice(torch, ns)
    op.register_fake(torch.empty_like)
    return op, (_grad(torch),)


def _with_fake(fake):
    def build(torch, ns):
        op = _differentiable(_numpy_twice(torch, ns))
        op.register_fake(lambda x: fake(torch, x))
        return op, (_grad(torch),)

    return build


_FAKES = {
    "fake_of_another_shape": lambda torch, x: x.new_empty((3, 2)),
    "fake_of_another_dtype": lambda torch, x: x.new_empty(x.shape, dtype=torch.float64),
    "fake_of_other_strides": lambda torch, x: x.new_empty((3, 2)).t(),
    "fake_with_another_count": lambda torch, x: (torch.empty_like(x), torch.empty_like(x)),
    "fake_that_reads_data": lambda torch, x: torch.empty_like(x) if x.sum().item() > 0 else x.t(),
    "fake_that_returns_its_input": lambda torch, x: x,
    "fake_that_converts_to_numpy": lambda torch, x: torch.from_numpy(x.detach().numpy()),
    "fake_that_raises": lambda torch, x: 1 / 0,
    "fake_of_none": lambda torch, x: None,
}
PROGRAMS.update({name: _with_fake(fake) for name, fake in _FAKES.items()})


def _with_backward(backward, setup=None):
    def build(torch, ns):
        op = _numpy_twice(torch, ns)
        op.register_fake(torch.empty_like)
        op.register_autograd(
            lambda ctx, grad: backward(torch, ctx, grad),
            setup_context=setup or (lambda ctx, inputs, output: None),
        )
        return op, (_grad(torch),)

    return build


_BACKWARDS = {
    "backward_in_numpy": lambda torch, ctx, g: torch.from_numpy(g.numpy() * 2),
    "backward_that_reads_data": lambda torch, ctx, g: g * g.sum().item(),
    "backward_of_another_shape": lambda torch, ctx, g: g.sum(0, keepdim=True)[:, :2],
    "backward_of_none": lambda torch, ctx, g: None,
    "backward_that_raises": lambda torch, ctx, g: 1 / 0,
    "backward_with_another_count": lambda torch, ctx, g: (g, g),
}
PROGRAMS.update({name: _with_backward(backward) for name, backward in _BACKWARDS.items()})


@program
def saved_tensor(torch, ns):
    def square(x):
        return torch.from_numpy(x.detach().numpy() ** 2)

    square.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    op = torch.library.custom_op(f"{ns}::square", square, mutates_args=())
    op.register_fake(torch.empty_like)
    op.register_autograd(
        lambda ctx, grad: 2 * ctx.saved_tensors[0] * grad,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    return op, (_grad(torch),)


@program
def undeclared_write(torch, ns):
    return _defined(torch, ns, lambda x: x.add_(1).clone()), (_plain(torch),)


@program
def declared_write(torch, ns):
    def fill(x, value):
        x.fill_(value)

    fill.__annotations__ = {"x": torch.Tensor, "value": float, "return": None}
    return torch.library.custom_op(f"{ns}::fill", fill, mutates_args={"x"}), (_plain(torch), 3.0)


@program
def declared_write_with_a_result(torch, ns):
    def accumulate(x, y):
        x += y
        return x.sum()

    hints = {"x": torch.Tensor, "y": torch.Tensor, "return": torch.Tensor}
    accumulate.__annotations__ = hints
    op = torch.library.custom_op(f"{ns}::accumulate", accumulate, mutates_args={"x"})
    op.register_fake(lambda x, y: x.new_empty(()))
    return op, (_plain(torch), _plain(torch))


@program
def write_that_never_happens(torch, ns):
    def leave(x):
        pass

    leave.__annotations__ = {"x": torch.Tensor, "return": None}
    return torch.library.custom_op(f"{ns}::leave", leave, mutates_args={"x"}), (_plain(torch),)


@program
def result_is_the_input(torch, ns):
    return _defined(torch, ns, lambda x: x), (_plain(torch),)


@program
def result_is_a_view(torch, ns):
    return _defined(torch, ns, lambda x: x.view(-1)), (_plain(torch),)


@program
def declared_view(torch, ns):
    schema = "(Tensor(a) x) -> Tensor(a)"
    op = _defined(torch, ns, lambda x: x.view(-1), schema)
    torch.library.register_fake(f"{ns}::f", lambda x: x.view(-1))
    return op, (_plain(torch),)


@program
def custom_op_that_returns_its_input(torch, ns):
    def same(x):
        return x

    same.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    op = torch.library.custom_op(f"{ns}::same", same, mutates_args=())
    op.register_fake(torch.empty_like)
    return op, (_plain(torch),)


@program
def results_that_share_memory(torch, ns):
    def both(x):
        y = x + 1
        return y, y.view(-1)

    op = _defined(torch, ns, both, "(Tensor x) -> (Tensor, Tensor)")
    torch.library.register_fake(f"{ns}::f", lambda x: (torch.empty_like(x), x.new_empty(6)))
    return op, (_plain(torch),)


@program
def two_results(torch, ns):
    op = _defined(torch, ns, lambda x: (x + 1, x.sum(0)), "(Tensor x) -> (Tensor, Tensor)")
    torch.library.register_fake(f"{ns}::f", lambda x: (torch.empty_like(x), x.new_empty(3)))
    return op, (_plain(torch),)


@program
def list_of_tensors(torch, ns):
    def total(xs):
        return sum(xs[1:], xs[0].clone())

    op = _defined(torch, ns, total, "(Tensor[] xs) -> Tensor")
    torch.library.register_fake(f"{ns}::f", lambda xs: torch.empty_like(xs[0]))
    return op, ([_plain(torch), _plain(torch)],)


@program
def list_of_results(torch, ns):
    op = _defined(torch, ns, lambda x: [x + 1, x * 2], "(Tensor x) -> Tensor[]")
    torch.library.register_fake(f"{ns}::f", lambda x: [torch.empty_like(x), torch.empty_like(x)])
    return op, (_plain(torch),)


@program
def kernel_without_fake(torch, ns):
    return _defined(torch, ns, lambda x: x * 2), (_plain(torch),)


@program
def composite_kernel(torch, ns):
    op = _defined(torch, ns, lambda x: x * 2, key="CompositeImplicitAutograd")
    return op, (_grad(torch),)


@program
def derivative_inside_the_kernel(torch, ns):
    op = _defined(torch, ns, lambda x: x * 2)
    torch.library.register_fake(f"{ns}::f", torch.empty_like)
    return op, (_grad(torch),)


@program
def function_inside_the_kernel(torch, ns):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    op = _defined(torch, ns, Twice.apply)
    torch.library.register_fake(f"{ns}::f", torch.empty_like)
    return op, (_grad(torch),)


@program
def function_at_the_autograd_key(torch, ns):
    op = _defined(torch, ns, lambda x: x * 2)
    torch.library.register_fake(f"{ns}::f", torch.empty_like)

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch._C._AutoDispatchBelowAutograd():
                return op(x)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    torch.library.impl(f"{ns}::f", "Autograd", Twice.apply)
    return op, (_grad(torch),)


@program
def derivative_of_a_defined_operator(torch, ns):
    op = _defined(torch, ns, lambda x: x.detach() * 2)
    torch.library.register_fake(f"{ns}::f", torch.empty_like)
    torch.library.register_autograd(f"{ns}::f", lambda ctx, grad: grad * 2)
    return op, (_grad(torch),)


@program
def results_that_change_from_call_to_call(torch, ns):
    calls = []

    def count(x):
        calls.append(1)
        return x * len(calls)

    op = _defined(torch, ns, count)
    torch.library.register_fake(f"{ns}::f", torch.empty_like)
    return op, (_plain(torch),)


@program
def random_results(torch, ns):
    op = _defined(torch, ns, lambda x: x + torch.rand(2, 3))
    torch.library.register_fake(f"{ns}::f", torch.empty_like)
    return op, (_plain(torch),)


@program
def kernel_that_raises(torch, ns):
    op = _defined(torch, ns, lambda x: 1 / 0)
    torch.library.register_fake(f"{ns}::f", torch.empty_like)
    return op, (_plain(torch),)


@program
def no_kernel(torch, ns):
    torch.library.define(f"{ns}::f", _TWICE)
    torch.library.register_fake(f"{ns}::f", torch.empty_like)
    return getattr(torch.ops, ns).f.default, (_plain(torch),)


@program
def optional_tensor_and_numbers(torch, ns):
    def scale(x, bias=None, alpha=1.0):
        return x * alpha if bias is None else x * alpha + bias

    op = _defined(torch, ns, scale, "(Tensor x, Tensor? bias=None, float alpha=1.0) -> Tensor")
    torch.library.register_fake(f"{ns}::f", lambda x, bias=None, alpha=1.0: torch.empty_like(x))
    return op, (_plain(torch), None, 2.0)


@program
def builtin_operator(torch, ns):
    return torch.ops.aten.sin.default, (_grad(torch),)


@program
def builtin_packet(torch, ns):
    return torch.ops.aten.relu, (_grad(torch),)


@program
def packet_with_overloads(torch, ns):
    return torch.ops.aten.add, (_plain(torch), _plain(torch))


@program
def no_operator(torch, ns):
    return torch.sin, (_plain(torch),)


@program
def wrong_arguments(torch, ns):
    op = _defined(torch, ns, lambda x: x * 2)
    return op, (_plain(torch), 3)


@program
def tensor_on_meta(torch, ns):
    op = _defined(torch, ns, lambda x: x * 2)
    torch.library.register_fake(f"{ns}::f", torch.empty_like)
    return op, (torch.empty(2, 3, device="meta"),)


def _with_dynamic_fake(kernel, fake):
    def build(torch, ns):
        op = _defined(torch, ns, lambda x: kernel(torch, x))
        torch.library.register_fake(f"{ns}::f", lambda x: fake(torch, x))
        return op, (_plain(torch),)

    return build


def _size(torch):
    return torch.library.get_ctx().new_dynamic_size()


_SYMBOLIC = {
    "fake_that_branches_on_a_size": (
        lambda torch, x: x * 2,
        lambda torch, x: torch.empty_like(x) if x.shape[0] == 2 else x.new_empty((1,)),
    ),
    "fake_that_converts_a_size": (
        lambda torch, x: x.sum(0),
        lambda torch, x: x.new_empty((int(x.shape[1]),)),
    ),
    "fake_that_multiplies_sizes": (
        lambda torch, x: x.reshape(-1).clone(),
        lambda torch, x: x.new_empty((x.shape[0] * x.shape[1],)),
    ),
    "fake_whose_size_is_a_value": (
        lambda torch, x: x.new_ones((int(x.max().item()),)),
        lambda torch, x: x.new_empty((int(x.max().item()),)),
    ),
    "fake_of_an_unknown_size": (
        lambda torch, x: x[x > 2].clone(),
        lambda torch, x: x.new_empty((_size(torch),)),
    ),
    "fake_of_nonzero": (
        lambda torch, x: torch.nonzero(x),
        lambda torch, x: torch.nonzero(x),
    ),
}
PROGRAMS.update({name: _with_dynamic_fake(*pair) for name, pair in _SYMBOLIC.items()})
_BACKWARDS_OF_VALUES = {
    "backward_that_branches_on_data": lambda torch, ctx, g: g * 2 if g.sum().item() > 0 else g,
    "backward_filled_with_a_value": lambda torch, ctx, g: g.new_full(g.shape, g.sum().item()),
    "backward_that_adds_values": lambda torch, ctx, g: g + (1 + g.sum().item() / 2 - 3),
    "backward_that_rounds_a_value": lambda torch, ctx, g: g * round(g.sum().item()),
}
PROGRAMS.update({name: _with_backward(b) for name, b in _BACKWARDS_OF_VALUES.items()})


VERDICTS = Path(__file__).parent / "data" / "opcheck_verdicts.txt"
_HEAD = """\
# What opcheck of torch 2.13.0 answers: program, then a letter for each test in torch's order:
# . SUCCESS, F a failure; or the class of the exception that opcheck itself raises.
# Written by python -m tests.mindtorch.opcheck_programs.
"""


def verdict(torch: Any, name: str) -> str:
    """What opcheck answers: a letter for each test, or the class of its exception."""
    try:
        op, args = PROGRAMS[name](torch, f"opcheck_{name}")
        answer = torch.library.opcheck(op, args, test_utils="ALL", raise_exception=False)
    except Exception as error:
        return type(error).__name__
    return "".join("." if result == "SUCCESS" else "F" for result in answer.values())


def main() -> None:
    """Ask torch about every program and write its answers."""
    import torch

    lines = [f"{name} {verdict(torch, name)}\n" for name in PROGRAMS]
    VERDICTS.write_text(_HEAD + "".join(lines))


if __name__ == "__main__":
    main()
