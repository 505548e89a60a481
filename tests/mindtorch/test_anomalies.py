"""detect_anomaly, run by torch and by mindtorch; and the order in which leaves end."""

import warnings

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")


def outcome(program, library):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            result = program(library)
        except RuntimeError as error:
            result = str(error)
    said = [str(w.message).partition("\n")[0].partition(" (Triggered")[0] for w in heard]
    source = [w for w in heard if "Traceback of forward call" in str(w.message)]
    assert not library.is_anomaly_enabled()
    return result, said, [f"in {program.__name__}" in str(w.message) for w in source]


def root_of_zero_over_zero(library):
    with library.autograd.detect_anomaly():
        x = library.tensor([0.0], requires_grad=True)
        (x / x * 0).sqrt().sum().backward()


def nan_let_through(library):
    with library.autograd.detect_anomaly(check_nan=False):
        x = library.tensor([0.0], requires_grad=True)
        (x / x * 0).sqrt().sum().backward()
        return str(x.grad.tolist())


def forward_outside(library):
    x = library.tensor([-1.0], requires_grad=True)
    y = x.sqrt().sum()
    with library.autograd.set_detect_anomaly(True):
        y.backward()


def own_function_that_fails(library):
    class Broken(library.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise RuntimeError("broken on purpose")

    with library.autograd.set_detect_anomaly(True):
        x = library.ones(1, requires_grad=True)
        Broken.apply(x).backward()


def broken_gradient_of_a_gradient(library):
    class Slope(library.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad / 0 * 0

    class Power(library.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return Slope.apply(ctx.saved_tensors[0]) * grad

    x = library.ones(2, requires_grad=True)
    y = Power.apply(x)
    with library.autograd.set_detect_anomaly(True):
        z = Power.apply(x)
        (slope,) = library.autograd.grad(z.sum(), x, create_graph=True)
        known = [sorted(n.metadata) for n in (z.grad_fn, slope.grad_fn)]
        for out in (z, y):
            (slope,) = library.autograd.grad(out.sum(), x, create_graph=True)
            try:
                slope.sum().backward()
            except RuntimeError as error:
                known.append(str(error))
    return known


def by_call(library):
    library.autograd.set_detect_anomaly(True)
    first = library.is_anomaly_enabled(), library.is_anomaly_check_nan_enabled()
    library.autograd.set_detect_anomaly(False)
    return first


@pytest.mark.parametrize(
    "program",
    [
        root_of_zero_over_zero,
        nan_let_through,
        forward_outside,
        own_function_that_fails,
        by_call,
        broken_gradient_of_a_gradient,
    ],
)
def test_anomalies_are_said_as_torch_says_them(program):
    assert outcome(program, mindtorch) == outcome(program, torch)


def order(library):
    log = []
    model = library.nn.Sequential(
        library.nn.Linear(3, 4), library.nn.ReLU(), library.nn.Linear(4, 2)
    )
    for name, parameter in model.named_parameters():
        library.nn.init.constant_(parameter, 0.1)
        parameter.register_post_accumulate_grad_hook(lambda p, name=name: log.append(name))
    for i in (0, 2):
        model[i].register_full_backward_hook(lambda m, a, b, i=i: log.append(i))
    model(library.ones(2, 3)).sum().backward()
    shared = library.ones(2, requires_grad=True)
    shared.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.tolist()))
    (shared * 2 + shared.exp() * shared).sum().backward()
    return log


def test_leaves_end_as_soon_as_their_gradient_is_whole():
    ours, theirs = order(mindtorch), order(torch)
    assert ours[:-1] == theirs[:-1]
    assert ours[-1] == pytest.approx(theirs[-1])
