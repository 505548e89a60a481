"""Distributions of torch and mindtorch: moments, densities, gradients, divergences, draws."""

import math

import numpy as np
import pytest
from scipy import stats

import mindtorch

from .families import FAMILIES, PAIRS, VECTORS

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")


def names(library):
    space = {name: getattr(library.distributions, name) for name in library.distributions.__all__}

    def tensor(data):
        made = library.tensor(data)
        return library.tensor(data, dtype=library.float64) if made.is_floating_point() else made

    return {**space, "T": tensor, "torch": library}


SPACES = {library.__name__: names(library) for library in (torch, mindtorch)}


def attempt(make):
    """Values, or the class of the refusal."""
    try:
        value = make()
    except (NotImplementedError, ValueError) as error:
        return type(error).__name__
    if isinstance(value, tuple | list):
        return [attempt(lambda part=part: part) for part in value]
    if not hasattr(value, "detach"):
        return value
    return np.array(value.detach().tolist(), dtype=str(value.dtype).rpartition(".")[2])


def same(ours, theirs, what):
    if isinstance(theirs, np.ndarray):
        assert isinstance(ours, np.ndarray), f"{what}: {ours}, torch {theirs}"
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), what
        rtol, atol = (2e-5, 1e-6) if ours.dtype == np.float32 else (1e-7, 1e-10)
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, err_msg=what)
    else:
        assert ours == theirs, what


@pytest.fixture(autouse=True)
def validated(monkeypatch):
    """Arguments are validated, whatever ran before."""
    for space in SPACES.values():
        kind = space["Normal"].__mro__[-2]
        monkeypatch.setattr(kind, "_validate_args", True)


def facts(space, expression, value):
    d, x = eval(expression, space), eval(value, space)
    yield "batch_shape", tuple(d.batch_shape)
    yield "event_shape", tuple(d.event_shape)
    yield "has_rsample", d.has_rsample
    yield "has_enumerate_support", d.has_enumerate_support
    yield "support", repr(d.support).split("(lower")[0].split("(upper")[0]
    for name in ("mean", "mode", "variance", "stddev"):
        yield name, attempt(lambda name=name: getattr(d, name))
    yield "log_prob", attempt(lambda: d.log_prob(x))
    yield "cdf", attempt(lambda: d.cdf(x))
    yield "icdf", attempt(lambda: d.icdf(d.cdf(x)))
    yield "entropy", attempt(lambda: d.entropy())
    yield "enumerate_support", attempt(lambda: d.enumerate_support(expand=False))
    wide = d.expand((3, *d.batch_shape))
    yield "expanded", tuple(wide.batch_shape)
    yield "expanded log_prob", attempt(lambda: wide.log_prob(x))
    yield "expanded mean", attempt(lambda: wide.mean)


# torch's expression for Kumaraswamy's mode is NaN wherever there is a mode; its Bessel functions of
# VonMises hold seven digits.
OWN = {("Kumaraswamy", "mode"), ("VonMises", "variance"),
       ("VonMises", "stddev")}  # fmt: skip


@pytest.mark.parametrize(("expression", "value"), FAMILIES)
def test_distribution_says_what_torch_says(expression, value):
    ours, theirs = (list(facts(SPACES[n], expression, value)) for n in ("mindtorch", "torch"))
    for (what, own), (_, other) in zip(ours, theirs, strict=True):
        if (expression.split("(")[0], what) not in OWN:
            same(own, other, what)


@pytest.mark.parametrize(("expression", "value"), FAMILIES)
def test_density_has_torchs_gradients(expression, value):
    grads = {}
    for name in ("mindtorch", "torch"):
        space, leaves = dict(SPACES[name]), []
        tensor = space["T"]

        def leaf(data, tensor=tensor, leaves=leaves):
            made = tensor(data)
            if made.is_floating_point():
                made = made.requires_grad_()
                leaves.append(made)
            return made

        x = eval(value, space)
        space["T"] = leaf
        d = eval(expression, space)
        density = d.log_prob(x).sum()
        if leaves:
            density.backward()
        grads[name] = [np.array((v.grad if v.grad is not None else v * 0).tolist()) for v in leaves]
    for own, other in zip(grads["mindtorch"], grads["torch"], strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-6, atol=1e-9)


# What is answered to odd calls, and what shows which class is which.
SAID = """
    Bernoulli(0.3).log_prob(torch.tensor(1))
    kl_divergence(Geometric(0.3), Gamma(1., 1.))
    kl_divergence(RelaxedBernoulli(T(0.5), T(0.3)), RelaxedBernoulli(T(0.5), T(0.3)))
    kl_divergence(Wishart(T(3.), torch.eye(2)), Wishart(T(4.), 2 * torch.eye(2)))
    setattr(Normal(0., 1.), "mean", 3)
    setattr(Categorical(torch.ones(2)), "mean", 3)
    setattr(Laplace(0., 1.), "mean", 3)
    ContinuousBernoulli(T(1.3)), ContinuousBernoulli(T(1.5)).probs
    ContinuousBernoulli(T(1.3), validate_args=False)
    HalfCauchy(T(1.)).expand(3)
    Binomial(torch.tensor([3, 4]), 0.5).probs, Pareto(1., 3.).cdf(torch.tensor([0.5]))
    [str(c) for c in (Uniform.support, Independent.support, Pareto.support)]
    torch.distributions.constraints.dependent.is_discrete
    sorted(torch.distributions.constraints.__all__), torch.distributions.__all__
    str(Dirichlet(torch.ones(2, requires_grad=True)).rsample().grad_fn.name())
    str(Gamma(torch.ones(2, requires_grad=True), torch.ones(2)).rsample().grad_fn.name())
    kl_divergence(Uniform(torch.ones(1, requires_grad=True), 3.), Uniform(0., 2.))
    kl_divergence(Gamma(torch.ones(1, requires_grad=True), 3.), Normal(0., 2.))
    kl_divergence(Gumbel(torch.ones(1, requires_grad=True), 3.), Normal(0., 2.))
    Multinomial(5, torch.ones(3)).sample(2)
    Multinomial(5, torch.ones(3)).param_shape
    Geometric(0.3).param_shape
    LKJCholesky(3, T(-0.5))
    Normal(torch.tensor([0, 1]), torch.tensor([1, 2])).sample()
    type("D", (Normal.__mro__[-2],), {})()
    str(ExpTransform), str(Normal), str(Bernoulli), str(OneHotCategorical), str(Transform)
    AbsTransform().with_cache(), AffineTransform(1, 2).forward_shape((2,))
    StackTransform([ExpTransform(), ExpTransform()])(torch.ones(3))
    torch.normal(torch.tensor([0, 1]), 1)
    torch.normal(torch.zeros(2), torch.ones(3))
    torch.binomial(torch.tensor([5]), torch.tensor([.2]))
    torch.zeros(2).bernoulli_(torch.ones(3))
"""


@pytest.mark.parametrize("code", SAID.split("\n")[1:-1], ids=str.strip)
def test_odd_calls_are_answered_as_by_torch(code):
    answers = []
    for space in SPACES.values():
        try:
            answers.append(repr(eval(code.strip(), space)))
        except Exception as error:
            answers.append(f"{type(error).__name__}: {error}")
    assert answers[1].replace("mindtorch", "torch") == answers[0]


@pytest.mark.parametrize("p", PAIRS)
def test_divergences_from_it_are_torchs(p):
    compare(p, PAIRS)


@pytest.mark.parametrize("p", VECTORS)
def test_divergences_of_vectors_are_torchs(p):
    compare(p, VECTORS)


def compare(p, others):
    def divergences(space):
        return [
            attempt(lambda q=q: space["kl_divergence"](eval(p, space), eval(q, space)))
            for q in others
        ]

    ours, theirs = divergences(SPACES["mindtorch"]), divergences(SPACES["torch"])
    for q, own, other in zip(others, ours, theirs, strict=True):
        same(own, other, f"KL({p} || {q})")


@pytest.mark.parametrize(("expression", "value"), FAMILIES)
def test_draws_have_the_moments_they_should(expression, value):
    d = eval(expression, SPACES["mindtorch"])
    mindtorch.manual_seed(7)
    n = 4000
    drawn = d.sample((n,))
    assert tuple(drawn.shape) == (n, *d.batch_shape, *d.event_shape)
    assert bool(d.support.check(drawn).all())
    mean, variance = attempt(lambda: d.mean), attempt(lambda: d.variance)
    if isinstance(mean, str) or isinstance(variance, str) or "VonMises" in expression:
        return
    usable = np.isfinite(mean) & np.isfinite(variance) & (np.abs(variance) > 0)
    kurtosis = 12  # generous: the mean's error is normal, the variance's has heavy tails
    values = np.array(drawn.double().tolist())
    error = np.abs(values.mean(0) - mean) / np.sqrt(np.maximum(variance, 1e-300) / n)
    assert (error[usable] < 5).all(), (values.mean(0), mean)
    if "Pareto" in expression or "Fisher" in expression or "InverseGamma" in expression:
        return
    off = np.abs(values.var(0) / variance - 1)
    assert (off[usable] < 6 * math.sqrt(kurtosis / n)).all(), (values.var(0), variance)


CONTINUOUS = [(e, v) for e, v in FAMILIES if e.startswith((
    "Beta", "Cauchy", "Chi2", "Exponential", "Gamma(", "Half", "InverseGamma", "Kumaraswamy",
    "LogNormal", "StudentT", "VonMises", "Weibull", "Pareto", "GeneralizedPareto",
    "ContinuousBernoulli"))]  # fmt: skip


@pytest.mark.parametrize(("expression", "value"), CONTINUOUS)
def test_draws_are_distributed_as_torchs(expression, value):
    """Two samples each, by Kolmogorov and Smirnov; a false alarm once in 10⁴ per element."""
    samples = []
    for name in ("mindtorch", "torch"):
        SPACES[name]["torch"].manual_seed(11)
        d = eval(expression, SPACES[name])
        samples.append(np.array(d.sample((3000,)).tolist()).reshape(3000, -1))
    for own, other in zip(samples[0].T, samples[1].T, strict=True):
        assert stats.ks_2samp(own, other).pvalue > 1e-4


@pytest.mark.parametrize("rate", [0.0, 0.3, 4.0, 10.0, 30.0, 1e5])
def test_poisson_draws_are_counted_right(rate):
    mindtorch.manual_seed(3)
    drawn = np.array(mindtorch.poisson(mindtorch.full((4000,), rate).double()).tolist())
    if rate == 0:
        assert not drawn.any()
        return
    quantiles = stats.poisson.cdf(drawn, rate) - np.random.default_rng(0).random(4000) * (
        stats.poisson.pmf(drawn, rate)
    )
    assert stats.kstest(quantiles, "uniform").pvalue > 1e-4


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (10, 0.03), (40, 0.9), (1000, 0.2), (10**6, 0.5)])
def test_binomial_draws_are_counted_right(n, p):
    mindtorch.manual_seed(3)
    drawn = mindtorch.binomial(mindtorch.full((4000,), float(n)), mindtorch.full((4000,), p))
    drawn = np.array(drawn.tolist())
    quantiles = stats.binom.cdf(drawn, n, p) - np.random.default_rng(0).random(4000) * (
        stats.binom.pmf(drawn, n, p)
    )
    assert stats.kstest(quantiles, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_gamma_and_dirichlet_draws_are_torchs_approximations(dtype):
    def grads(library):
        alpha = library.tensor([0.1, 0.5, 0.9, 2.0, 7.0, 9.0, 50.0, 400.0]).to(
            getattr(library, dtype)
        )
        scales = [0.01, 0.1, 0.5, 0.95, 1.0, 2.0]
        gamma = [library._standard_gamma_grad(alpha, alpha * s) for s in scales]
        x, a = (v.reshape(-1) for v in library.meshgrid(alpha / 401 + 1e-3, alpha, indexing="ij"))
        dirichlet = [library._dirichlet_grad(x, a, a + b) for b in (0.3, 1.0, 8.0, 50.0)]
        return np.array([g.tolist() for g in gamma]), np.array([g.tolist() for g in dirichlet])

    # In float32 terms of the series for small values cancel.
    for own, other in zip(grads(mindtorch), grads(torch), strict=True):
        np.testing.assert_allclose(own, other, rtol=5e-4 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize(("draw", "mean"), [
    (lambda x: mindtorch._standard_gamma(x), lambda x: x),
    (lambda x: mindtorch.poisson(x), lambda x: x),
    (lambda x: mindtorch.binomial(x.ceil() * 4, x * 0 + 0.25), lambda x: x.ceil()),
])  # fmt: skip
@pytest.mark.parametrize("device", ["npu", "cpu"])
def test_draws_by_rejection_have_their_means_on_each_device(draw, mean, device):
    rates = mindtorch.tensor([0.3, 2.0, 11.0, 40.0]).expand(3000, 4).contiguous()
    mindtorch.manual_seed(5)
    drawn = draw(rates.to(device))
    assert (drawn.device.type, drawn.dtype) == (device, mindtorch.float32)
    again = mindtorch.manual_seed(5) and draw(rates.to(device))
    assert mindtorch.equal(drawn.cpu(), again.cpu())
    error = (drawn.cpu().mean(0) - mean(rates[0])).abs() / (mean(rates[0]) / 3000).sqrt()
    assert bool((error < 5).all()), error
    assert draw(rates.to("meta")).device.type == "meta"
    assert draw(rates[:0].to(device)).shape == (0, 4)


TRANSFORMS = [
    ("ExpTransform()", "T([-1., 2.])"),
    ("SigmoidTransform()", "T([-1., 2.])"),
    ("SoftplusTransform()", "T([-1., 2.])"),
    ("TanhTransform()", "T([-1., .2])"),
    ("PowerTransform(T(2.5))", "T([1., 2.])"),
    ("AbsTransform()", "T([1., 2.])"),
    ("AffineTransform(T([1., 2.]), -3.)", "T([1., 2.])"),
    ("AffineTransform(1., T([2., 3.]), event_dim=1)", "T([1., 2.])"),
    ("SoftmaxTransform()", "T([1., 2.])"),
    ("StickBreakingTransform()", "T([[1., 2.], [0., -1.]])"),
    ("LowerCholeskyTransform()", "T([[1., 2.], [0., -1.]])"),
    ("PositiveDefiniteTransform()", "T([[1., 2.], [.5, -1.]])"),
    ("CorrCholeskyTransform()", "T([[.1, .2, -.5], [1., 0., 2.]])"),
    ("CorrCholeskyTransform()", "T([.3])"),
    ("ComposeTransform([ExpTransform(), AffineTransform(1., 2.)])", "T([-1., 2.])"),
    ("ComposeTransform([AffineTransform(1., 2.), StickBreakingTransform()])", "T([-1., 2.])"),
    ("IndependentTransform(ExpTransform(), 1)", "T([-1., 2.])"),
    ("ReshapeTransform((2, 2), (4,))", "T([[1., 2.], [3., 4.]])"),
    ("CumulativeDistributionTransform(Normal(T(0.), T(1.)))", "T([-1., 2.])"),
    ("CatTransform([ExpTransform(), AffineTransform(1., 2.)], 0, [1, 2])", "T([1., 2., 3.])"),
    ("StackTransform([ExpTransform(), AffineTransform(1., 2.)], 0)", "T([[1., 2.], [3., 4.]])"),
    ("transform_to(Normal.support)", "T([-1., 2.])"),
    ("biject_to(Dirichlet.support)", "T([-1., 2.])"),
    ("transform_to(Dirichlet.support)", "T([-1., 2.])"),
    ("biject_to(Uniform(T(1.), T(3.)).support)", "T([-1., 2.])"),
    ("biject_to(Gamma.support)", "T([-1., 2.])"),
    ("biject_to(Pareto(T(1.), T(3.)).support)", "T([-1., 2.])"),
    ("transform_to(MultivariateNormal.arg_constraints['scale_tril'])", "T([[1., 2.], [0., -1.]])"),
    ("biject_to(LKJCholesky.support)", "T([.1, .2, -.5])"),
]


@pytest.mark.parametrize(("expression", "value"), TRANSFORMS)
def test_transform_maps_as_torchs(expression, value):
    def facts(space):
        t, x = eval(expression, space), eval(value, space)
        y = t(x)
        yield "value", attempt(lambda: y)
        yield "inverse", attempt(lambda: t.inv(y))
        yield "volume", attempt(lambda: t.log_abs_det_jacobian(x, y))
        yield "inverse volume", attempt(lambda: t.inv.log_abs_det_jacobian(y, x))
        yield "bijective", t.bijective
        yield "dims", (t.domain.event_dim, t.codomain.event_dim)
        yield "forward_shape", tuple(t.forward_shape(tuple(x.shape)))
        yield "inverse_shape", tuple(t.inverse_shape(tuple(y.shape)))
        yield "own inverse", t.inv.inv is t
        yield "equal", t == eval(expression, space)

    for (what, own), (_, other) in zip(
        facts(SPACES["mindtorch"]), facts(SPACES["torch"]), strict=True
    ):
        same(own, other, what)


def subclasses(library):
    """What libraries write: subclasses with an `__init__` and an `expand` of their own."""
    d = library.distributions

    class Diagonal(d.Independent):
        def __init__(self, loc, scale):
            super().__init__(d.Normal(loc, scale), 1)
            self.label = "diagonal"

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Diagonal, _instance)
            new.label = "expanded"
            return super().expand(batch_shape, new)

    class Own(d.Distribution):
        arg_constraints: dict = {}

        def __init__(self):
            super().__init__((2,), validate_args=False)

    def sub(kind, *args):
        class Sub(kind):
            def __init__(self):
                super().__init__(*args)

        return Sub()

    one = library.ones(2)
    yield Diagonal(library.zeros(3), library.ones(3)).expand((4,)), "label"
    yield Own(), "batch_shape"
    for kind, args in (("Normal", (0.0, one)), ("Pareto", (one, one)), ("Weibull", (one, one)),
                       ("LogNormal", (0.0, one)), ("LKJCholesky", (3,)),
                       ("MultivariateNormal", (one, library.eye(2)))):  # fmt: skip
        yield sub(getattr(d, kind), *args), "batch_shape"
        plain = type("Plain", (getattr(d, kind),), {})
        yield plain(*args), "batch_shape"


def test_subclasses_expand_as_torchs():
    def told(library):
        for distribution, name in subclasses(library):
            try:
                expanded = distribution.expand((5, *distribution.batch_shape))
                shapes = tuple(expanded.batch_shape), tuple(expanded.event_shape)
                yield type(expanded).__name__, str(getattr(expanded, name)), shapes
            except NotImplementedError as error:
                yield str(error)

    assert list(told(mindtorch)) == list(told(torch))


def test_a_transform_may_set_its_domain_on_itself():
    def told(library):
        class Clip(library.distributions.Transform):
            bijective, sign = True, 1

            def __init__(self, bound):
                super().__init__()
                self.domain = library.distributions.constraints.real
                self.codomain = library.distributions.constraints.interval(-bound, bound)

        clip = Clip(5.0)
        return repr(clip.domain), repr(clip.inv.domain), clip.event_dim

    assert told(mindtorch) == told(torch)
    with pytest.raises(AttributeError):
        mindtorch.distributions.Transform().domain  # noqa: B018


def test_distributions_and_transforms_may_be_modules():
    def told(library):
        d, nn = library.distributions, library.nn

        class Shift(d.Transform, nn.Module):
            domain = codomain = d.constraints.real
            bijective, sign = True, 1
            __hash__ = nn.Module.__hash__

            def __init__(self):
                super().__init__(cache_size=1)
                self.by = nn.Parameter(library.ones(1))

            def _call(self, x):
                return x + self.by

            def _inverse(self, y):
                return y - self.by

        class Prior(d.Normal, nn.Module):
            def __init__(self):
                super().__init__(0.0, 1.0)
                self.inner = nn.Linear(1, 1)

        shift, prior = Shift(), Prior()
        yield shift._cached_x_y
        x = library.zeros(1)
        y = shift(x)
        yield shift.inv(y) is x, shift._cached_x_y[0] is x, [n for n, _ in shift.named_parameters()]
        yield [n for n, _ in prior.named_parameters()], prior.log_prob(library.zeros(1)).shape

    assert [str(v) for v in told(mindtorch)] == [str(v) for v in told(torch)]
