"""Transfer of parametrizations with their parameters, and refusals of what does not fit."""

import pytest

from tests.mindtorch.agreement import agree


def _transfer(lib, make):
    nn, parametrize = lib.nn, lib.nn.utils.parametrize
    source, target = nn.Linear(3, 2), nn.Linear(3, 2)
    make(lib, source)
    parametrize.transfer_parametrizations_and_params(source, target, "weight")
    pairs = zip(
        source.parametrizations.weight.parameters(),
        target.parametrizations.weight.parameters(),
        strict=True,
    )
    names = [name for name, _ in target.named_parameters()]
    return names, bool((source.weight == target.weight).all()), [a is b for a, b in pairs]


def _outer(lib, module):
    class Outer(lib.nn.Module):
        def forward(self, a, b):
            return a[:, None] * b

        def right_inverse(self, w):
            return w[:, 0].detach(), w[0].detach()

    lib.nn.utils.parametrize.register_parametrization(module, "weight", Outer())


@pytest.mark.parametrize(
    "make",
    [
        _outer,
        lambda lib, m: lib.nn.utils.parametrizations.weight_norm(m),
        lambda lib, m: lib.nn.utils.parametrize.register_parametrization(
            m, "weight", lib.nn.Softplus()
        ),
    ],
)
def test_originals_are_transferred(make):
    agree(lambda lib: _transfer(lib, make))


@pytest.mark.parametrize(
    "call",
    [
        lambda lib: lib.logsumexp(lib.ones(4, 5), ()),
        lambda lib: lib.logsumexp(lib.ones(4, 5), [], True).shape,
        lambda lib: lib.logsumexp(lib.tensor(2.0), ()),
        lambda lib: lib.nn.functional.pad(lib.ones(2, 4, 1, 4), (0, 0, 1, 1), mode="reflect"),
        lambda lib: lib.nn.functional.pad(lib.ones(2, 4, 1, 4), (4, 0), mode="reflect"),
        lambda lib: lib.nn.functional.pad(lib.ones(1, 2, 3, 3, 3), (0,) * 4 + (3, 0), "reflect"),
        lambda lib: lib.Tensor._make_wrapper_subclass(list, (2,)),
    ],
)
def test_what_does_not_fit_is_refused_as_in_torch(call):
    agree(call)
