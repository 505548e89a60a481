"""What layers, their utilities, distributions and trees refuse or warn of is what torch says."""

import re
import warnings

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

CALLS = """
F.affine_grid(lib.ones(1, 2, 2), (1, 1, 2, 2))
F.affine_grid(lib.ones(1, 2, 3), (1, 1, 1, 1), align_corners=True)
F.batch_norm(x, None, None, training=True, eps=-1)
F.batch_norm(x, x[0], x[0], eps=-1)
F.embedding_bag(x, lib.tensor([[0]]))
F.embedding_bag(lib.tensor([0]), x[0])
F.embedding_bag(lib.tensor([0]), lib.ones(2, 2).long(), lib.tensor([0]))
F.gumbel_softmax(x, eps=1.0)
F.cross_entropy(x, lib.tensor([0, 1, 2]), weight=lib.ones(4, requires_grad=True))
F.nll_loss(lib.zeros(1, 2, 1, 1), lib.zeros(1, 1, 1).long(), weight=lib.ones(2, requires_grad=True))
F.binary_cross_entropy(x.sigmoid(), x.sigmoid(), weight=x.clone().requires_grad_())
F.binary_cross_entropy_with_logits(x, x, pos_weight=x.clone().requires_grad_())
F.multi_margin_loss(x, lib.tensor([0, 1, 2]), weight=lib.ones(4, requires_grad=True))
F.soft_margin_loss(x, x.clone().requires_grad_())
F.batch_norm(x, *lib.ones(2, 4, requires_grad=True))
lib.trapezoid(x, dx=1j)
lib.linalg.inv_ex(x)
F.interpolate(x[None, None], size=2, recompute_scale_factor=True)
F.upsample(x[None, None], 2)
F.upsample_nearest(x[None, None], 2)
F.upsample_bilinear(x[None, None], 2)
P.LowRankMultivariateNormal(lib.ones(3, 2), lib.ones(2, 2, 1), lib.ones(2, 2))
P.MixtureSameFamily(P.Categorical(lib.ones(2)), 1)
P.MultivariateNormal(lib.ones(2), scale_tril=lib.ones(2))
P.MultivariateNormal(lib.ones(2), precision_matrix=lib.ones(2))
P.Wishart(lib.tensor(1.5), lib.eye(2))
P.Wishart(lib.tensor(3.0))
P.constraints.cat([1])
P.constraints.stack([1])
P.constraints.independent(1, 1)
P.kl_divergence(normal(2), normal(3))
P.kl_divergence(low_rank(2), low_rank(3))
P.kl_divergence(normal(2), low_rank(3))
prune.global_unstructured(3, prune.L1Unstructured)
prune.global_unstructured([(nn.Linear(2, 2), 'weight')], prune.L1Unstructured, importance_scores=3)
prune.l1_unstructured(nn.Linear(2, 2), 'weight', amount=0.5, importance_scores=x)
nn.utils.spectral_norm(nn.LazyLinear(2))
nn.utils.weight_norm(nn.LazyLinear(2))
lib.utils.data.DataLoader([1], multiprocessing_context='x', num_workers=1)
tree.tree_unflatten([1], 3)
tree.treespec_dumps(3)
tree.tree_map_only(3, abs, [1])
tree.tree_structure([1, 2]).flatten_up_to((1, 2))
tree.treespec_tuple([1])
tree.treespec_dict({'a': 1})
lib.set_deterministic_debug_mode("loud")
lib.profiler.profile(activities=[])
""".strip().splitlines()


def _said(lib, call):
    """The class and text of an error, and the warnings."""
    import importlib

    def module(name):
        return importlib.import_module(f"{lib.__name__}.{name}")

    distributions = module("distributions")
    scope = {
        "lib": lib, "F": lib.nn.functional, "nn": lib.nn, "P": distributions,
        "prune": module("nn.utils.prune"), "tree": module("utils._pytree"),
        "x": lib.arange(12.0).reshape(3, 4),
        "normal": lambda n: distributions.MultivariateNormal(lib.ones(n), lib.eye(n)),
        "low_rank": lambda n: distributions.LowRankMultivariateNormal(
            lib.ones(n), lib.ones(n, 1), lib.ones(n)
        ),
    }  # fmt: skip
    module("utils.data"), module("profiler")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            eval(call, scope)
            text = ""
        except Exception as error:
            text = f"{type(error).__name__} {error}".replace("mindtorch.", "torch.")
    told = [(w.category.__name__, re.sub("0x[0-9a-f]+", "", str(w.message))) for w in caught]
    return text, told


@pytest.mark.parametrize("call", CALLS)
def test_what_is_refused_is_said_as_by_torch(call):
    assert _said(mindtorch, call) == _said(torch, call)
