"""Seeded draws on cpu are torch's, and states of generators go from one to the other and back."""

import subprocess
import sys

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


FUSED = getattr(torch.backends.cpu, "get_cpu_capability", str)() in ("AVX2", "AVX512")


@pytest.mark.skipif(not FUSED, reason="torch fuses products with sums where the processor can")
@pytest.mark.parametrize(
    ("n", "dtype"),
    [(n, d) for d in FLOATS for n in (1, 15, 16, 37, 4000)]
    # Behind blocks of normal draws in 16 bits stand numpy's logarithms, not libm's.
    + [(n, d) for d in ("float16", "bfloat16") for n in (1, 15)],
)
def test_fills_are_torchs_to_the_last_bit(n, dtype):
    """Below a block of normal draws, of whole blocks, and with a rest; strided as well."""
    for fill, *bounds in (
        ("uniform_", -0.7, 0.41), ("uniform_", 1.0, 1.25), ("uniform_",), ("normal_",),
        ("normal_", 0.3, 0.7),
    ):  # fmt: skip
        exactly(lambda t, d, f=fill, b=bounds: getattr(t.empty(n, dtype=d), f)(*b), dtype)
        exactly(lambda t, d, f=fill, b=bounds: getattr(t.empty(n, 2, dtype=d)[:, 0], f)(*b), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_uniform_draw_is_never_the_end(dtype):
    exactly(lambda t, d: t.empty(1 << 18, dtype=d).uniform_(1000, 1001), dtype)


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
    generator = mindtorch.Generator("npu").manual_seed(5)
    generator.advance(8)
    state = generator.get_state()
    assert state.numpy().view(np.uint64).tolist() == [5, 2]
    other = mindtorch.Generator("npu").set_state(state)
    assert other.advance(1) == generator.advance(1)


# Memory in another order than the elements': transposed, of a permuted one, with gaps.
LAYOUTS = {
    "transposed": lambda t, d: t.empty(5, 4, dtype=d).t(),
    "permuted": lambda t, d: t.empty(2, 3, 4, dtype=d).permute(1, 2, 0),
    "gaps": lambda t, d: t.empty(3, 7, 9, dtype=d)[:, 1],
    "transposed with gaps": lambda t, d: t.empty(4, 9, dtype=d)[:, ::2].t(),
}
FILLS = {
    "uniform_": (), "normal_": (1.0, 2.0), "random_": (0, 50), "exponential_": (2.0,),
    "cauchy_": (), "geometric_": (0.3,), "log_normal_": (), "bernoulli_": (0.4,),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fills_go_through_memory_in_its_order(layout):
    for dtype in ("float32", "float64", "bfloat16"):
        for name, args in FILLS.items():
            draw = lambda t, d, name=name, args=args: getattr(LAYOUTS[layout](t, d), name)(*args)  # noqa: E731
            (ours, place), (theirs, other) = (draws(n, draw, dtype) for n in (mindtorch, torch))
            np.testing.assert_allclose(ours, theirs, rtol=1e-2 if dtype == "bfloat16" else 1e-5)
            assert place == other, name


@pytest.mark.parametrize("layout", LAYOUTS)
def test_draws_that_are_like_another_tensor_go_through_its_memory(layout):
    def chances(t, d):
        x = LAYOUTS[layout](t, d)
        return x.copy_(t.linspace(0, 1, x.numel(), dtype=d).view(x.shape))

    f = {
        "rand_like": lambda t, d: t.rand_like(chances(t, d)),
        "randn_like": lambda t, d: t.randn_like(chances(t, d)),
        "randint_like": lambda t, d: t.randint_like(chances(t, d), 99),
        "bernoulli": lambda t, d: t.bernoulli(chances(t, d)),
        "bernoulli_": lambda t, d: LAYOUTS[layout](t, d).bernoulli_(chances(t, d)),
        "out": lambda t, d: t.randn(chances(t, d).shape, out=LAYOUTS[layout](t, d)),
        "dropout": lambda t, d: t.dropout(chances(t, d), 0.5, True),
        "alpha": lambda t, d: t.nn.functional.alpha_dropout(chances(t, d), 0.5, True),
        "gumbel": lambda t, d: t.nn.functional.gumbel_softmax(chances(t, d)),
        "rrelu": lambda t, d: t.rrelu(-chances(t, d), 0.1, 0.5, True),
        "complex": lambda t, d: t.view_as_real(LAYOUTS[layout](t, t.complex64).normal_()),
    }
    for name, draw in f.items():
        (ours, place), (theirs, other) = (draws(n, draw, "float32") for n in (mindtorch, torch))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=name)
        assert place == other, name


def test_processes_that_set_no_seed_draw_other_numbers():
    command = [sys.executable, "-c", "import mindtorch as torch; print(torch.initial_seed())"]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(2)]
    assert runs[0].stdout != runs[1].stdout
    assert mindtorch.Generator().initial_seed() == torch.Generator().initial_seed()
