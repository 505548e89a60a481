"""Seeded draws on cpu are torch's, and states of generators go from one to the other and back."""

import numpy as np
import pytest

import mindtorch
from mindtorch._random import sequential

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

FLOATS = ("float32", "float64")


def draws(lib, function, dtype=None):
    """Two draws after a seed, and a word that shows where the stream is then."""
    lib.manual_seed(7)
    kind = getattr(lib, dtype) if dtype else None
    made = [function(lib, kind) for _ in range(2)]
    return [m.double().numpy() for m in made], lib.randint(0, 1 << 20, (1,)).item()


def exactly(function, dtype=None):
    (ours, place), (theirs, theirs_place) = (draws(n, function, dtype) for n in (mindtorch, torch))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    assert place == theirs_place


def tensor(lib, values, dtype):
    return lib.tensor(values, dtype=dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, "float16", "bfloat16"])
def test_poisson_draws_are_torchs(dtype):
    rates = [0.0, 0.01, 0.5, 3.0, 9.9, 10.0, 25.0, 1000.0] * 20
    exactly(lambda t, d: t.poisson(tensor(t, rates, d)), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_binomial_draws_are_torchs(dtype):
    counts = [0.0, 5.0, 10.0, 100.0, 100.0, 1000.0, 30.0, 7.0, 1e6] * 20
    probs = [0.5, 0.3, 0.9, 0.2, 0.7, 0.5, 1.0, 0.0, 0.37] * 20
    exactly(lambda t, d: t.binomial(tensor(t, counts, d), tensor(t, probs, d)), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_gamma_and_dirichlet_draws_are_torchs(dtype):
    shapes = [[0.01, 0.5, 1.0], [3.0, 20.0, 0.1], [150.0, 0.9, 1.1]] * 10
    exactly(lambda t, d: t._standard_gamma(tensor(t, shapes, d)), dtype)
    exactly(lambda t, d: t._sample_dirichlet(tensor(t, shapes, d)), dtype)


DISTRIBUTIONS = {
    "Beta": lambda t, d: d.Beta(t.tensor([0.5, 2.0]), t.tensor([1.0, 3.0])),
    "Binomial": lambda t, d: d.Binomial(10, t.tensor([0.2, 0.7])),
    "Chi2": lambda t, d: d.Chi2(t.tensor([3.0, 5.0])),
    "Categorical": lambda t, d: d.Categorical(t.tensor([0.2, 0.3, 0.5])),
    "Dirichlet": lambda t, d: d.Dirichlet(t.tensor([0.5, 2.0, 3.0])),
    "FisherSnedecor": lambda t, d: d.FisherSnedecor(t.tensor([3.0]), t.tensor([4.0])),
    "Gamma": lambda t, d: d.Gamma(t.tensor([2.0, 70.0]), t.tensor([2.0, 7.0])),
    "Geometric": lambda t, d: d.Geometric(t.tensor([0.2, 0.7])),
    "InverseGamma": lambda t, d: d.InverseGamma(t.tensor([2.0]), t.tensor([2.0])),
    "LKJCholesky": lambda t, d: d.LKJCholesky(3, 0.5),
    "Multinomial": lambda t, d: d.Multinomial(10, t.tensor([0.2, 0.3, 0.5])),
    "NegativeBinomial": lambda t, d: d.NegativeBinomial(t.tensor([3.0]), t.tensor([0.3])),
    "Normal": lambda t, d: d.Normal(t.zeros(30), t.ones(30)),
    "Poisson": lambda t, d: d.Poisson(t.tensor([2.0, 70.0])),
    "StudentT": lambda t, d: d.StudentT(t.tensor([3.0, 5.0])),
    "VonMises": lambda t, d: d.VonMises(t.tensor([0.5, 2.0]), t.tensor([1.0, 3.0])),
    "Wishart": lambda t, d: d.Wishart(t.tensor([4.0]), t.eye(3)[None]),
}


@pytest.mark.filterwarnings("ignore:Singular sample")
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_draw_what_torch_draws(name):
    """To the last places: torch's logarithms and roots in float32 are vectorised."""
    make = DISTRIBUTIONS[name]
    both = [
        draws(n, lambda t, _: make(t, t.distributions).sample((5,))) for n in (mindtorch, torch)
    ]
    (ours, place), (theirs, theirs_place) = both
    np.testing.assert_allclose(np.stack(ours), np.stack(theirs), rtol=2e-6, atol=1e-6)
    assert place == theirs_place


def test_integers_take_as_many_words_as_torchs():
    for high in ((1 << 28) - 1, 1 << 28, 1 << 32, 1 << 40):
        exactly(lambda t, d, high=high: t.randint(0, high, (6,)))
    for dtype in ("uint8", "int16", "int32", "int64"):
        exactly(lambda t, d: t.empty(20, dtype=d).random_(), dtype)


def test_permutations_in_c_are_those_in_python():
    from mindtorch._random import mt19937
    from mindtorch._random.generator import Generator

    one, other = Generator().manual_seed(3), Generator().manual_seed(3)
    for n in (0, 1, 2, 7, 700):
        np.testing.assert_array_equal(sequential.permutation(one, n), mt19937.permutation(other, n))
    assert one.words(1) == other.words(1)


@pytest.mark.parametrize("drawn", [0, 1, 3, 623, 624, 625, 1300])
def test_states_of_generators_are_torchs_bytes(drawn):
    for seed in (0, 3, 1 << 40):
        for lib in (mindtorch, torch):
            lib.manual_seed(seed)
            lib.rand(drawn)
        ours, theirs = mindtorch.get_rng_state(), torch.get_rng_state()
        assert ours.numpy().tobytes() == theirs.numpy().tobytes()


def test_a_state_of_torch_is_gone_on_from_and_given_back():
    torch.manual_seed(11)
    torch.randn(3)  # one of a pair waits
    state = torch.get_rng_state()
    mindtorch.set_rng_state(mindtorch.tensor(state.numpy()))
    np.testing.assert_array_equal(mindtorch.randn(5).numpy(), torch.randn(5).numpy())
    expected = torch.randperm(30).tolist()
    assert mindtorch.randperm(30).tolist() == expected
    torch.set_rng_state(torch.from_numpy(mindtorch.get_rng_state().numpy()))
    assert torch.randperm(9).tolist() == mindtorch.randperm(9).tolist()


@pytest.mark.parametrize("size", [0, 16, 5055, 5057])
def test_states_of_another_size_are_refused(size):
    for lib in (mindtorch, torch):
        with pytest.raises(RuntimeError, match="5056"):
            lib.set_rng_state(lib.zeros(size, dtype=lib.uint8))


def test_a_state_that_no_generator_has_is_refused():
    state = mindtorch.get_rng_state()
    state[8] = 77  # words left that do not fit the place
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        mindtorch.set_rng_state(state)


def test_the_state_of_a_device_is_a_seed_and_an_offset():
    generator = mindtorch.Generator("meta").manual_seed(5)
    generator.advance(8)
    state = generator.get_state()
    assert state.numpy().view(np.uint64).tolist() == [5, 2]
    other = mindtorch.Generator("meta").set_state(state)
    assert other.advance(1) == generator.advance(1)
