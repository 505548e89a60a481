"""Names that torch keeps for older programs, and small modules: values and errors are torch's."""

import contextlib
import warnings

import numpy as np
import pytest
from agreement import agree

import mindtorch

torch = pytest.importorskip("torch", reason="torch 2.13 is the reference")

CALLS = {
    "range": lambda t: t.range(1, 4, 0.5),
    "range down": lambda t: t.range(4, 1, -1),
    "range of one": lambda t: t.range(2, 2),
    "range wrong": lambda t: t.range(2, 1),
    "range still": lambda t: t.range(1, 2, 0),
    "matrix_power": lambda t: t.arange(4.0).reshape(2, 2).matrix_power(3),
    "polygamma": lambda t: t.tensor([0.5, 2.0]).polygamma(2),
    "polygamma_": lambda t: t.tensor([0.5, 2.0]).polygamma_(1),
    "hypot_": lambda t: t.tensor([3.0, 5.0]).hypot_(t.tensor([4.0, 12.0])),
    "xlogy_": lambda t: t.tensor([3.0, 0.0]).xlogy_(t.tensor([4.0, 0.0])),
    "float_power_": lambda t: t.tensor([3.0], dtype=t.float64).float_power_(2),
    "float_power_ of half": lambda t: t.tensor([3.0]).float_power_(2),
    "prelu": lambda t: t.tensor([-3.0, 1.0]).prelu(t.tensor([0.1])),
    "map_": lambda t: t.tensor([1.0, 2.0]).map_(t.tensor([3.0, 4.0]), lambda a, b: a * b),
    "map2_": lambda t: t.ones(2).map2_(t.ones(2), t.ones(2), lambda a, b, c: a + b + c),
    "dim_order": lambda t: t.ones(2, 3, 4).transpose(0, 2).dim_order(),
    "is_conj": lambda t: (t.is_conj(t.ones(1)), t.ones(1).is_neg(), t.ones(1).is_nonzero()),
    "is_same_size": lambda t: t.is_same_size(t.ones(2, 1), t.ones(1, 2)),
    "is_signed": lambda t: (t.is_signed(t.ones(1, dtype=t.uint8)), t.get_device(t.ones(1))),
    "dropout_": lambda t: t.dropout_(t.ones(3), 0.0, True),
    "celu_": lambda t: t.celu_(t.tensor([-1.0, 1.0])),
    "threshold_": lambda t: t.threshold_(t.tensor([-1.0, 1.0]), 0.0, 9.0),
    "nan_to_num_": lambda t: t.nan_to_num_(t.tensor([float("nan"), 1.0])),
    "arcsin_": lambda t: t.arcsin_(t.tensor([0.5])),
    "norm_except_dim": lambda t: t.norm_except_dim(t.arange(6.0).reshape(2, 3), 2, 1),
    "norm_except_dim all": lambda t: t.norm_except_dim(t.arange(6.0).reshape(2, 3), 2, -1),
    "reinforce": lambda t: t.ones(1).reinforce(1),
    "resize": lambda t: t.arange(6.0).resize(2, 3),
    "pools with indices": lambda t: t.nn.functional.max_pool2d_with_indices(
        t.arange(16.0).reshape(1, 1, 4, 4), 2
    )[1],
    "adaptive pools with indices": lambda t: t.nn.functional.adaptive_max_pool1d_with_indices(
        t.arange(8.0).reshape(1, 1, 8), 2
    )[1],
    "functional": lambda t: t.functional.einsum("ij->ji", t.arange(4.0).reshape(2, 2)),
    "layouts": lambda t: (str(t.sparse_coo), str(t.ones(1).layout), t.strided == t.sparse_csr),
    "data._utils": lambda t: t.utils.data._utils.collate.default_collate([1, 2]),
    "kl_div": lambda t: t.kl_div(t.zeros(2), t.ones(2), 2),
    "kl_div wrong": lambda t: t.kl_div(t.zeros(2), t.ones(2), 7),
    "jvp": lambda t: t.autograd.functional.jvp(
        lambda x, y: (x * y, x.sum()), (t.arange(3.0), t.ones(3)), (t.ones(3), t.arange(3.0))
    ),
    "jvp without v": lambda t: t.autograd.functional.jvp(lambda x: x * x, t.ones(2)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_what_torch_gives(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(CALLS[name], digits=5)


def weights(t, model):
    with t.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(t.sin(t.arange(float(p.numel())) + i).reshape(p.shape))


def test_spectral_norm_as_a_hook_follows_power_iteration():
    results = []
    for t in (torch, mindtorch):
        layer = t.nn.utils.spectral_norm(t.nn.Conv2d(2, 3, 3))
        weights(t, layer)
        with t.no_grad():
            layer.weight_u.copy_(t.tensor([0.6, 0.8, 0.0]))
            layer.weight_v.copy_(t.ones(18) / 18**0.5)
        x = t.sin(t.arange(100.0)).reshape(2, 2, 5, 5)
        y = layer(x)
        y.sum().backward()
        names = sorted(layer.state_dict())
        grad = layer.weight_orig.grad
        t.nn.utils.remove_spectral_norm(layer)
        results.append((names, [v.detach().numpy() for v in (y, grad, layer.weight)]))
    assert results[0][0] == results[1][0]
    for a, b in zip(results[0][1], results[1][1], strict=True):
        np.testing.assert_allclose(b, a, atol=2e-5)
    with pytest.raises(ValueError, match="not found in Linear"):
        mindtorch.nn.utils.remove_spectral_norm(mindtorch.nn.Linear(2, 2))


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
@pytest.mark.parametrize("map_", ["matrix_exp", "cayley", "householder", None])
@pytest.mark.parametrize("base", [True, False])
def test_orthogonal_weights_are_torchs(shape, map_, base):
    results = []
    for t in (torch, mindtorch):
        t.manual_seed(0)
        holder = t.nn.Module()
        holder.weight = t.nn.Parameter(t.randn(shape))
        try:
            t.nn.utils.parametrizations.orthogonal(
                holder, orthogonal_map=map_, use_trivialization=base
            )
        except NotImplementedError as error:
            results.append(str(error))
            continue
        w = holder.weight
        (w * t.arange(float(w.numel())).reshape(w.shape)).sum().backward()
        grad = holder.parametrizations.weight.original.grad
        results.append((w.detach().numpy(), grad.numpy()))
    if isinstance(results[0], str):
        assert results[0] == results[1]
        return
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(b, a, atol=3e-4)


def test_modules_without_filling():
    layer = mindtorch.nn.utils.skip_init(mindtorch.nn.Linear, 3, 2)
    assert (layer.weight.device.type, tuple(layer.weight.shape)) == ("cpu", (2, 3))
    with pytest.raises(RuntimeError, match="'device' arg"):
        mindtorch.nn.utils.skip_init(mindtorch.nn.ReLU)


def test_switches_of_autocast():
    for t in (torch, mindtorch):
        x = t.ones(2, 2)
        t.set_autocast_enabled("cpu", True)
        t.set_autocast_dtype("cpu", t.bfloat16)
        try:
            assert (x @ x).dtype is t.bfloat16
            assert t.is_autocast_cpu_enabled()
        finally:
            t.set_autocast_enabled("cpu", False)
        assert (x @ x).dtype is t.float32
        assert t.autocast_increment_nesting() == 1
        assert t.autocast_decrement_nesting() == 0


def test_checkpoints_run_in_their_contexts():
    for t in (torch, mindtorch):
        order = []

        @contextlib.contextmanager
        def note(name, order=order):
            order.append(name)
            try:
                yield
            finally:
                order.append("end " + name)

        x = t.ones(2, requires_grad=True)
        y = t.utils.checkpoint.checkpoint(
            lambda x: (x * x).sin(), x, use_reentrant=False,
            context_fn=lambda: (note("first"), note("second")),
        )  # fmt: skip
        y.sum().backward()
        assert order == ["first", "end first", "second", "end second"]


def test_futures_give_values_and_errors():
    for t in (torch, mindtorch):
        first, second = t.futures.Future(), t.futures.Future()
        chained = first.then(lambda f: f.wait() + 1)
        both = t.futures.collect_all([chained, second])
        assert not both.done()
        first.set_result(1)
        second.set_exception(KeyError("x"))
        assert chained.value() == 2
        assert both.done()
        with pytest.raises(KeyError):
            t.futures.wait_all([first, second])
        with pytest.raises(RuntimeError, match="marked completed once"):
            first.set_result(2)


def test_hooks_of_saved_tensors_can_be_forbidden():
    for t in (torch, mindtorch):
        graph = t.autograd.graph
        x = t.ones(2, requires_grad=True)
        with graph.disable_saved_tensors_hooks("not here"):
            (x * x).sum().backward()
            with pytest.raises(RuntimeError, match="not here"):
                graph.saved_tensors_hooks(lambda v: v, lambda v: v).__enter__()
        with graph.allow_mutation_on_saved_tensors():
            y = x.detach().clone().requires_grad_()
            z = y * 1
            w = (z * z).sum()
            z.detach().zero_()
            w.backward()
        assert y.grad.tolist() == [2, 2]
