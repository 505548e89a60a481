"""Layers' functions agree, refusals too: attention and its switches, losses, norms, shapes."""

import warnings
from importlib import import_module

import pytest
from agreement import agree

CASES = """
q = o(2, 6, 3, 8).transpose(1, 2); A(q, q, q).transpose(1, 2).view(2, 6, 24).shape
q, k, v = o(2, 6, 48).view(2, 6, 3, 2, 8).permute(2, 0, 3, 1, 4); A(q, k, v).stride()
q = o(2, 1, 6, 8).expand(2, 3, 6, 8); A(q, q, q).stride()
A(p[:, :, :2], p, t.arange(16.0).view(1, 2, 2, 4))
A(p, p, p, dropout_p=-0.5)
M = t.nn.MultiheadAttention(4, 2); M(*[o(2, 0, 4)] * 3)[1].shape
M = t.nn.MultiheadAttention(4, 2); M(*[o(2, 0, 4)] * 3, need_weights=False)[0].shape
t.nn.TransformerEncoderLayer(4, 2, batch_first=True).eval()(o(0, 2, 4)).shape
A(p[..., :0], p[..., :0], p)
A(p.long(), p.long(), p.long())
A(p[0, 0, 0], p.double(), p)
A(p, p[:, :1].expand(1, 3, 3, 4), p, enable_gqa=True)
A(p, p, p, o(2, 3).bool())
A(p, p, p, o(2, 1, 2, 3, 3))
A(g, g, g).grad_fn.name(), A(g, g, g, r(3, 3)).grad_fn.name()
n = g[0, 0]; A(n, n, n).grad_fn.name(), A(g[0], g[0], g[0]).grad_fn.name()
A(g, g, g[..., :3]).grad_fn.name(), A(g, g, g, dropout_p=0.1).grad_fn.name()
t.nn.attention.sdpa_kernel([])(A)(p, p, p)
S(A)(p, p, p)
S(A)(p[0], p[0], p[0])
S(A)(p, p, p, dropout_p=0.1)
S(A)(p, p, p[..., :2])
S(A)(p, p[:, :1], p[:, :1])
S(A)(p.long(), p.long(), p.long())
S(A)(p, p, p, o(2, 3, 3))
S(A)(p.mT, p.mT, p.mT)
t.nn.attention.sdpa_kernel('math').__enter__()
t.backends.cuda.enable_math_sdp(0)
t.backends.cuda.flash_sdp_enabled(), t.backends.cuda.cudnn_sdp_enabled()
A(p, p, p, bias.causal_lower_right(3, 3)), A(p[:, :, :2], p, p, bias.causal_lower_right(2, 3))
A(p, p, p, bias.causal_upper_left(3, 3), is_causal=True)
A(p, p, p, attn_mask=bias.causal_lower_right(2, 3))
A(p, p, p.double(), bias.causal_lower_right(2, 3))
bias.causal_upper_left(3)
b = bias.causal_lower_right(5, 3); b.shape, str(b)
flex.flex_attention(p[0], p[0], p[0])
flex.flex_attention(g, g, g)
flex.flex_attention(p, p[:, :1], p[:, :1])
flex.flex_attention(p, p.double(), p, return_lse=True)
flex.flex_attention(p, p, p, return_lse=True, return_aux=flex.AuxRequest())
flex.flex_attention(p, p, p, return_aux=flex.AuxRequest(max_scores=True))
flex.flex_attention(p, p, p, block_mask=M(causal, None, None, 256, 256, 'cpu'))
m = M(causal, 2, 3, 300, 256, 'cpu'); repr(m[0]), str(m[:, 1]), m._adjust(200, 256).sparsity()
m = M(causal, 2, 3, 300, 256, 'cpu'); m.to_dense(), m.q_indices, m.full_q_num_blocks
M(causal, 2, 3, 300, 256, 'cpu').as_tuple(False)[:6]
M(lambda b, h, q: q, 1, 1, 8, 8, 'cpu')
flex.create_mask(lambda s, b, h, q, k: t.where(q > k, s, -float('inf')), 1, 1, 3, 3, 'cpu')
flex.BlockMask.from_kv_blocks(t.tensor([1]), t.tensor([1]))
flex.or_masks(1, 2)
o(2, 2, 3) @ o(2, 3, 2).double()
o(2, 9, 9) @ o(2, 9, 9).double()
o(9, 9) @ o(2, 9, 9).half()
t.bmm(o(2, 9, 9).half(), o(2, 9, 9))
t.baddbmm(o(2, 2, 2), o(2, 2, 3), o(2, 3, 2).double())
t.baddbmm(o(2, 9, 9), o(2, 9, 9), o(2, 9, 9).long())
t.einsum('bij,bjk->bik', o(2, 9, 9), o(2, 9, 9).double())
F.cross_entropy(x, y, o(4))
F.cross_entropy(x[..., 0], y[:, 0], o(4))
F.cross_entropy(x, x, o(4))
F.cross_entropy(x, x, ignore_index=1)
F.cross_entropy(x, y, label_smoothing=-0.1)
F.nll_loss(x.unsqueeze(3), y.unsqueeze(2), o(3, 1))
F.nll_loss(x.unsqueeze(3), y)
F.nll_loss(x.unsqueeze(3), y.unsqueeze(2).expand(2, 4, 2), o(2))
F.binary_cross_entropy(t.tensor([0.5, float('nan')]), t.tensor([0.0, 1.0]))
F.multilabel_margin_loss(x[..., 0], t.tensor([[0, 4, 1], [1, 2, -1]]))
t.nn.NLLLoss2d()
F.interpolate(o(1, 1, 4, 4), size=(2.0, 2.0))
F.interpolate(o(1, 1, 4, 4), size=2.5)
F.interpolate(o(1, 1, 4, 4), size=2.5, mode='bilinear')
F.embedding_bag(t.tensor([0, 1]), o(3, 2), t.tensor([1, 2]))
F.embedding_bag(t.tensor([[0, 1]]), o(3, 2), mode='sum', per_sample_weights=o(1, 2).double())
F.embedding_bag(t.tensor([0, 1]), o(3, 2), t.tensor([0.0, 1]))
F.embedding_bag(t.tensor([[0, 1]]), o(3, 2), padding_idx=7)
F.embedding(t.tensor([True]), o(3, 2))
F.rms_norm(o(2, 3), (3,), o(3).double())
F.group_norm(o(1, 2), 2)
F.group_norm(o(2, 4), 0)
F.group_norm(o(2, 4), -2)
F.batch_norm(o(2, 3), o(3), None, training=True)
F.instance_norm(o(2, 3, 4), use_input_stats=False)
F.dropout3d(o(2, 3), training=False)
F.feature_alpha_dropout(o(2), 0.5, True)
F.bilinear(o(2, 3), o(2, 4), o(5, 3, 4), o(4))
F.one_hot(t.tensor([0, 1]), 0)
F.cosine_similarity(o(2, 3), o(2, 3).long())
F.max_unpool2d(o(1, 1, 2, 2), t.tensor([[[[5, 17], [23, 25]]]]), 2)
t.nn.LSTMCell(3, 4)(o(2, 3), (o(2, 4),))
t.nn.LSTM(3, 4, 2)(o(2, 1, 3))[0].grad_fn.name()
t.nn.utils.rnn.pack_padded_sequence(o(3, 2, 2), t.tensor([[3, 2]]))
t.nn.utils.rnn.pack_padded_sequence(o(3, 0, 2), t.tensor([], dtype=t.long))
t.nn.Linear(1, 1).state_dict({}, 'x.').keys()
str(t.nn.utils.parametrizations.orthogonal(L(3, 3)).parametrizations.weight[0].orthogonal_map)
t.nn.utils.parametrizations.weight_norm(L(2, 3)).weight.grad_fn.name()
t.nn.utils.parametrizations.weight_norm(L(2, 3), dim=5)
[name(F.silu, F.elu, F.celu, F.leaky_relu, F.hardtanh, F.hardswish, F.mish, F.rrelu, F.relu6)]
F.pairwise_distance(r(2, 3), o(2, 3)).grad_fn.name()
F.cross_entropy(r(2, 3), o(2, 3)).grad_fn.name()
F.grid_sample(r(1, 1, 2, 2, 2), o(1, 1, 1, 1, 3)).grad_fn.name()
list(L(1, 1).__dict__)
F.mse_loss(o(2), o(2).numpy())
F.binary_cross_entropy(o(2).numpy(), o(2))
list(L(1, 1).named_parameters(3))
t.nn.init.trunc_normal_(o(3), a=2, b=1)
l = L(1, 1); m = t.nn.Sequential(l, l); F2(m, {'0.bias': o(1), '1.bias': o(1)}, o(1))
""".strip().splitlines()


def scope(library):
    def name(*functions):  # of the nodes of activations that write to their input
        x = library.ones(2, requires_grad=True)
        return [function(x * 1, inplace=True).grad_fn.name() for function in functions]

    attention = import_module(f"{library.__name__}.nn.attention")
    ones, flex = library.ones, import_module(f"{library.__name__}.nn.attention.flex_attention")
    return {
        "t": library, "F": library.nn.functional, "o": ones,
        "r": lambda *sizes: ones(*sizes, requires_grad=True), "p": ones(1, 2, 3, 4),
        "g": ones(1, 2, 3, 4, requires_grad=True), "x": library.zeros(2, 3, 4),
        "y": library.zeros(2, 4, dtype=library.long),
        "name": name, "L": library.nn.Linear, "F2": library.func.functional_call,
        "A": library.nn.functional.scaled_dot_product_attention,
        "S": attention.sdpa_kernel(attention.SDPBackend.FLASH_ATTENTION),
        "bias": import_module(f"{library.__name__}.nn.attention.bias"),
        "flex": flex, "M": flex.create_block_mask,
        "causal": lambda b, h, q, k: q >= k,
    }  # fmt: skip


@pytest.mark.parametrize("code", CASES)
def test_a_call_agrees_with_torch(code):
    def run(library):
        names = scope(library)
        *statements, last = code.split("; ")
        for statement in statements:
            exec(statement, names)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = eval(last, names)
            except Exception as error:
                result = f"{type(error).__name__}: {error}"
        texts = [str(w.message).split(" (Triggered")[0].strip() for w in caught]
        return result, [text for text in texts if "unfused" not in text]

    agree(run, digits=5)


def test_a_subclass_sees_a_layer_whose_later_operand_it_is():
    def run(library):
        class Seen(library.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func.__name__

        late = library.ones(2, 2).as_subclass(Seen)
        four = library.ones(1, 1, 2, 2)
        functional = library.nn.functional
        return (
            functional.scaled_dot_product_attention(four, four, four, late),
            functional.embedding(library.tensor([1]), late),
            functional.mse_loss(library.ones(2, 2), late),
        )

    assert agree(run)[0] == "scaled_dot_product_attention"
