"""What function modes see, and what may be done under the modes of gradients, against torch."""

import pytest

torch = pytest.importorskip("torch")

import mindtorch  # noqa: E402 - torch first: where it is missing, the module is skipped

CALLS = """\
zeros((2,)); ones((2,)); full((2,), 1.0); empty((2,)); rand((2,)); randn((2,)); randint(3, (2,))
arange(3); linspace(0, 1, 3); logspace(0, 1, 3); eye(2); tensor([1.0]); as_tensor([1.0]); asarray([1.0])
zeros_like(x); ones_like(x); full_like(x, 1.0); rand_like(x); empty_like(x); randperm(3)
tril_indices(2, 2); scalar_tensor(1.0); complex(x, x); polar(x, x); hann_window(3); kaiser_window(3)
empty_strided((2,), (1,)); normal(x, 1.0); bernoulli(x); poisson(x); cartesian_prod(x)
meshgrid(x, indexing='ij'); einsum('i->i', x); stack([x]); cat([x]); where(x > 0, x, x); atleast_1d(x)
nn.functional.relu(x); nn.functional.mse_loss(x, x); nn.functional.softmax(x, 0); tensordot(x, x, 1)
is_tensor(x); get_num_threads(); result_type(x, x); broadcast_shapes((2,), (1,))
""".replace("\n", ";").split(";")


def seen(library, call):
    names = []

    class Mode(library.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(func)
            return func(*args, **(kwargs or {}))

    scope = {"x": library.ones(2), "library": library}
    with Mode():
        eval(f"library.{call.strip()}", scope)
    return [f.__name__ for f in names], any(f is getattr(library, f.__name__, f) for f in names)


@pytest.mark.parametrize("call", [c for c in CALLS if c.strip()])
@pytest.mark.filterwarnings("ignore")
def test_a_mode_sees_the_functions_that_it_sees_in_torch(call):
    ours, theirs = seen(mindtorch, call), seen(torch, call)
    assert ours[0][:1] == theirs[0][:1]
    assert ours[1] == theirs[1]


@pytest.mark.parametrize(
    "write",
    ["t.add_(1)", "t[0].add_(1)", "t.view(1, 2).mul_(2)", "t[:1].zero_()", 
     "t.copy_(t)", "t.unsqueeze(0).random_()", "t.clone().add_(1)", "(t + 1).add_(1)", "t.view(2)"],
)  # fmt: skip
def test_what_was_made_in_inference_mode_is_written_to_where_torch_writes(write):
    def outcome(library):
        with library.inference_mode():
            t = library.ones(2)
        try:
            return eval(write, {"t": t}).is_inference()
        except RuntimeError as error:
            return str(error)

    assert outcome(mindtorch) == outcome(torch)


@pytest.mark.parametrize("name", ["jacobian", "hessian", "vjp", "jvp", "vhp", "hvp"])
def test_derivatives_are_there_where_the_caller_records_none(name):
    def outcome(library):
        x = library.tensor([1.0, 2.0])
        vector = () if name in ("jacobian", "hessian") else (library.ones(2),)
        scalar = name in ("hessian", "vhp", "hvp")
        with library.no_grad():
            result = getattr(library.autograd.functional, name)(
                (lambda v: (v**3).sum()) if scalar else (lambda v: v**2), x, *vector
            )
        return repr(result), library.is_grad_enabled()

    assert outcome(mindtorch) == outcome(torch)
