"""Nested tensors of layout torch.jagged: values, shapes, gradients and refusals are torch's.

On an NPU the same calls give what they give on torch's cpu.
"""

import copy
import pickle
import re

import pytest

import mindtorch
from tests.mindtorch.agreement import agree

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

CALLS = """
x
x.shape
x.size(0)
x.size(1)
x.size(-1)
x.dim()
x.numel()
x.layout
x.is_nested
x.is_contiguous()
x.stride()
x.dtype
x.values()
x.offsets()
x.lengths()
len(x)
list(x.unbind())
[t for t in x]
x[0]
x[-1]
x[1, 0]
x[..., 0]
x + 1
x * x
x + torch.ones(4)
x + torch.ones(1, 1, 4)
x + torch.arange(36.0).view(3, 3, 4)
torch.arange(9.0).view(3, 3, 1) * x
x + torch.ones(3, 4, 4)
x + torch.ones(1, 3, 4)
x + torch.ones(1, 3, 1, 4)
F.scaled_dot_product_attention(*[x.chunk(2, -1)[0].unflatten(-1, (1, 2)).transpose(1, 2)] * 3)
x * torch.ones(3, 1, 4)
torch.ones(4) - x
-x
x.sin()
torch.relu(x)
F.gelu(x)
F.silu(x)
F.dropout(x, 0.0)
x.to(torch.float64)
x.half()
x.clone()
x.detach()
x.contiguous()
x > 0
torch.where(x > 0, x, -x)
torch.zeros_like(x)
torch.ones_like(x)
torch.rand_like(x).shape
torch.empty_like(x).shape
torch.full_like(x, 2.)
x.sum()
x.sum(-1)
x.sum(1)
x.sum(1, keepdim=True)
x.sum(-1, keepdim=True)
x.sum(0)
x.sum((1, 2))
x.mean()
x.mean(1)
x.mean(-1)
x.amax(1)
x.amax(-1)
x.max()
x.max(-1)
x.min(1)
x.any()
x.all()
x.argmax(-1)
x.prod(-1)
x.softmax(-1)
x.softmax(1)
x.log_softmax(-1)
torch.softmax(x, -1)
torch.softmax(x, 1)
torch.log_softmax(x, -1)
torch.log_softmax(x, -1, dtype=torch.float64)
F.softmax(x, -1)
F.log_softmax(x, 2)
F.softmin(x, -1)
F.layer_norm(x, (4,))
F.rms_norm(x, (4,))
F.linear(x, w)
F.linear(x, w, b)
x @ w.t()
x.matmul(w.t())
torch.bmm(x, torch.ones(3, 4, 2))
x @ x.transpose(1, 2)
x.transpose(1, 2)
x.transpose(-1, -2).shape
x.transpose(0, 1)
x.unsqueeze(-1)
x.unsqueeze(1)
x.unflatten(-1, [2, 2])
x.unflatten(-1, [2, 2]).transpose(1, 2)
x.unflatten(-1, [2, 2]).flatten(2)
x.view(3, -1, 2, 2)
x.reshape(3, -1, 2, 2)
x.view(3, x.size(1), 2, 2)
x.chunk(2, -1)
x.split(2, -1)
x.split([1, 3], -1)
x.chunk(3, 0)
x.select(1, 0)
x.narrow(-1, 1, 2)
torch.cat([x, x], -1)
torch.cat([x, x], 0)
torch.stack([x, x])
torch.stack([x, x], -1)
x.to_padded_tensor(0.)
x.to_padded_tensor(-1., (3, 5, 4))
torch.nested.to_padded_tensor(x, 0.)
x.tolist()
x.numpy()
x.cumsum(-1)
x.masked_fill(x > 0, 0.)
x.pow(2)
x ** 2
x.clamp(0, 1)
x.abs().sqrt()
x == x
x.expand(3, x.size(1), 4)
x.unsqueeze(-1).expand(3, x.size(1), 4, 2)
x.copy_(x)
x.add_(1)
x.mul_(2)
x.zero_()
x.fill_(1.)
x.item()
bool(x)
F.embedding(i, w)
F.scaled_dot_product_attention(q, q, q)
F.cross_entropy(x.values(), torch.zeros(6, dtype=torch.long))
F.mse_loss(x, x * 2)
torch.nested.nested_tensor_from_jagged(torch.arange(6.), torch.tensor([0, 2, 6]))
torch.nested.nested_tensor_from_jagged(torch.arange(12.).view(6, 2), lengths=torch.tensor([2, 4]))
torch.nested.nested_tensor_from_jagged(torch.arange(6.), torch.tensor([0, 2, 6]), lengths=torch.tensor([1, 2]))
torch.nested.as_nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
torch.nested.as_nested_tensor(torch.ones(2, 3, 4), layout=torch.jagged)
torch.nested.narrow(torch.arange(12.).view(3, 4), 1, torch.tensor([0, 1, 0]), torch.tensor([2, 2, 3]), layout=torch.jagged)
torch.nested.narrow(torch.arange(12.).view(3, 4), 1, torch.tensor([0, 1, 0]), torch.tensor([2, 2, 3]), layout=torch.jagged).contiguous().values()
torch.nested.masked_select(torch.arange(6.).view(2, 3), torch.tensor([[True, False, True], [True, True, True]]))
torch.nested.nested_tensor([[1, 2], [3]], layout=torch.jagged)
torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(3, 2)], layout=torch.jagged)
torch.nested.nested_tensor([torch.ones(2), torch.ones(3, 2)], layout=torch.jagged)
torch.nested.nested_tensor([torch.ones(())], layout=torch.jagged)
torch.nested.nested_tensor([], layout=torch.jagged)
isinstance(x, torch.Tensor)
type(x).__name__
x.requires_grad
x.size(1) == x.size(1)
x.size(1) == y.size(1)
x.size(1) == (x * 2).size(1)
x.size(1) > 1
x.size(1) == 3
x.nbytes
x.element_size()
x.T
x.mT
x.permute(0, 2, 1)
x.permute(1, 0, 2)
x.flip(-1)
x.sort(-1)
x.topk(2, -1)
torch.nn.Linear(4, 2)(x).shape
torch.nn.LayerNorm(4)(x)
torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))(x).shape
torch.nn.Embedding(7, 3)(i).shape
grads(lambda t: t.sum())
grads(lambda t: F.linear(t, w).softmax(-1).pow(2).sum())
grads(lambda t: t.to_padded_tensor(0.).square().sum())
grads(lambda t: sum(u.square().sum() for u in t.unbind()))
grads(lambda t: F.layer_norm(t, (4,)).pow(3).sum())
grads(lambda t: t.transpose(1, 2).sin().values().sum())
copy.deepcopy(x)
pickle.loads(pickle.dumps(x))
x.index_select(0, torch.tensor([0, 2]))
x.logical_not()
x.isnan()
x.nan_to_num()
torch.isfinite(x).all()
x.square().sum(-1).sqrt()
x.float().type(torch.float64)
x.cpu()
x.max(1)
x._max_seqlen
x._min_seqlen
x.repeat(1, 1, 2)
F.pad(x, (0, 1))
F.leaky_relu(x, .1)
torch.lerp(x, x + 1, .5)
torch.maximum(x, torch.zeros(4))
x.reciprocal()
x.squeeze(-1)
x.squeeze()
x.flatten(1)
x.flatten(0, 1)
x.is_floating_point()
x.ndim
""".strip().splitlines()
# What torch refuses or cannot do on its cpu, by its result with dense tensors.
BEYOND = {
    "x.unsqueeze(1).squeeze(1).unbind()": "rows",
    "torch.equal(x, x.clone())": "True",
    "F.glu(x, -1).unbind()": "[F.glu(t, -1) for t in rows]",
    "torch.addcmul(x, x, x).unbind()": "[torch.addcmul(t, t, t) for t in rows]",
    "(x * x).mean(1)": "torch.stack([(t * t).mean(0) for t in rows])",
    "F.scaled_dot_product_attention(q, q, q, is_causal=True).unbind()":
        "[F.scaled_dot_product_attention(t, t, t, is_causal=True) for t in q.unbind()]",
    "grads(lambda t: (t * t).mean(1).sum()).unbind()": "[2 * t / len(t) for t in rows]",
    "x.transpose(1, 2) @ x": "torch.stack([t.mT @ t for t in rows])",
}  # fmt: skip


def names(lib, device):
    """What the expressions name, in a library and on a device."""
    samples = [
        lib.arange(4.0 * n).reshape(n, 4).sub(5).mul(0.3 + n).sin().to(device) for n in (2, 3, 1)
    ]

    def grads(function):
        leaf = lib.nested.nested_tensor(samples, layout=lib.jagged, requires_grad=True)
        function(leaf).backward()
        return leaf.grad

    nest = lib.nested.nested_tensor
    numbers = [lib.tensor([0, 2], device=device), lib.tensor([1, 2, 0], device=device)]
    x = nest(samples, layout=lib.jagged)
    return {
        "torch": lib, "F": lib.nn.functional, "grads": grads, "copy": copy, "pickle": pickle,
        "x": x, "y": nest(samples, layout=lib.jagged), "rows": samples,
        "i": nest(numbers, layout=lib.jagged),
        "w": lib.arange(12.0, device=device).view(3, 4) / 10, "b": lib.arange(3.0, device=device),
        "q": x.unflatten(-1, [2, 2]).transpose(1, 2),
    }  # fmt: skip


def text(value, lib):
    """A result in words that both libraries share; lengths are j."""
    if isinstance(value, lib.Tensor) and value.is_nested:
        shape = tuple(value.shape)
        words = f"nested {shape} {value.offsets().tolist()} {value.requires_grad}"
        return f"{words} {text(value.values(), lib)}"
    if isinstance(value, lib.Tensor):
        numbers = value.detach().cpu().double().round(decimals=3).add(0.0).tolist()
        return f"{tuple(value.shape)} {value.dtype} {numbers}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__} {[text(v, lib) for v in value]}"
    return repr(value)


def outcome(call, lib, device):
    lib.manual_seed(0)
    default = lib.get_default_device() if device != "cpu" else None
    try:
        if device != "cpu":
            lib.set_default_device(device)
        result = text(eval(call, names(lib, device)), lib)
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    finally:
        if default is not None:
            lib.set_default_device(default)
    return re.sub(r"j\d+", "j", result)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_calls_of_nested_tensors_give_what_torch_gives(device):
    if device == "npu" and not mindtorch.npu.is_available():
        pytest.skip("NPU not available")
    differing = []
    for call in CALLS:
        theirs, ours = outcome(call, torch, "cpu"), outcome(call, mindtorch, device)
        if theirs != ours:
            differing.append(f"{call}\n  torch: {theirs}\n  here:  {ours}")
    assert not differing, "\n".join(differing)


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_calls_that_torch_refuses_give_what_dense_tensors_give(device):
    if device == "npu" and not mindtorch.npu.is_available():
        pytest.skip("NPU not available")
    for call, dense in BEYOND.items():
        ours, expected = (outcome(c, mindtorch, device) for c in (call, dense))
        assert ours.removeprefix("tuple").removeprefix("list") == expected.removeprefix("list"), (
            call
        )


def test_lengths_of_two_nested_tensors_are_not_the_same():
    scope = names(mindtorch, "cpu")
    with pytest.raises(RuntimeError, match=r"cannot call binary pointwise function add"):
        eval("x + y", scope)
    with pytest.raises(ValueError, match="ordering is indeterminate"):
        eval("x.size(1) > 100", scope)


def test_samples_of_no_elements_have_no_place_in_results():
    x = mindtorch.nested.nested_tensor(
        [mindtorch.ones(0, 2), mindtorch.ones(3, 2)], layout=mindtorch.jagged
    )
    assert x.sum(1).tolist() == [[0.0, 0.0], [3.0, 3.0]]
    assert mindtorch.equal(x.softmax(1).values(), mindtorch.full((3, 2), 1 / 3))
    assert x.to_padded_tensor(7.0)[0].tolist() == [[7.0, 7.0]] * 3


def test_lengths_of_the_same_offsets_are_the_same_and_symbolic():
    def run(t):
        values, offsets = t.arange(10.0).reshape(5, 2), t.tensor([0, 1, 3, 5])
        nested = t.nested.nested_tensor_from_jagged
        a, b = nested(values, offsets), nested(values + 1, offsets)
        with pytest.raises(RuntimeError):
            a + nested(values, offsets.clone())
        total = (nested(values, a.offsets()) * (a + b)).values().tolist()
        symbolic = [isinstance(n, t.SymInt) for n in (*a.shape, a.shape[1] * 2)]
        return total, symbolic, a.shape == b.shape, t.cat([a, b], -1).shape[2]

    assert run(mindtorch) == run(torch)


@pytest.mark.parametrize(
    "case",
    ["plain", "normed", "scattered", "unchecked", "with a mask", "training", "learning"],
)
def test_an_encoder_leaves_padding_out(case):
    def run(t):
        t.manual_seed(0)
        layer = t.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
        norm = t.nn.LayerNorm(4, bias=True) if case == "normed" else None
        encoder = t.nn.TransformerEncoder(layer, 2, norm=norm, mask_check=case != "unchecked")
        encoder.train(case == "training")
        padding = t.tensor([[False, False, False], [False, case == "scattered", True]])
        if case == "scattered":
            padding = padding.flip(1)
        options = {"mask": t.zeros(3, 3) > 0} if case == "with a mask" else {}
        with t.set_grad_enabled(case == "learning"):
            x = t.arange(24.0).reshape(2, 3, 4).sin()
            return encoder(x, src_key_padding_mask=padding, **options).detach()

    agree(run, digits=4)
