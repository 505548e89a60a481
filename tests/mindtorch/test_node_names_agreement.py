"""The nodes of results have torch's names, and lead where torch's do."""

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

# x requires a gradient, y does not.
CALLS = """
t.special.zeta(2.,x)
t.xlogy(x,2.)
t.special.xlog1py(x,2.)
x.clone().fill_(5)
x.clone().masked_fill_(x>0,1)
x**2
x%2
t.div(x,y,rounding_mode='floor')
x.round(decimals=1)
t.sort(x,stable=True)[0]
t.clamp(x,max=y)
t.clamp_max(x,y)
t.clamp_min(x,y)
t.clamp(x,min=y)
t.clamp(x,0,1)
t.clamp(x,min=0)
t.clamp(x,max=0)
t.clamp(x,y,y)
t.diag(x[0])
t.diag_embed(x)
x.index_fill(0,t.tensor([0]),2.)
t.rsub(x,y)
t.rsub(x,1)
1-x
F.pad(x[None],(1,1),mode='reflect')
F.pad(x[None],(1,1),mode='replicate')
t.slice_scatter(x,y)
t.linalg.cholesky(x@x.T+t.eye(4))
t.reshape(x.t(),(2,8))
x.t().flatten()
x.t().contiguous()
x.to(t.float64)
x.flip(0)
x.type(t.float64)
x[0]
x[:,None]
x[[0,1]]
x[x>0]
x.std(0)
x.var()
x.expand(2,4,4)
x.repeat(2,1)
x.T
x.mT
x.mH
x.permute(1,0)
x.unflatten(0,(2,2))
x.chunk(2)[0]
x.unbind()[0]
x.clone()
x.cumsum(0)
F.gelu(x)
F.silu(x)
F.dropout(x)
F.softmax(x,0)
F.embedding(t.tensor([0]),x)
t.stack([x,x])
x.norm(dim=1)
x.norm()
F.normalize(x)
F.mse_loss(x,y)
F.l1_loss(x,y)
F.smooth_l1_loss(x,y)
F.kl_div(x,y)
F.binary_cross_entropy(x,y)
t.where(x>0,x,y)
t.where(x>0,x,0.)
x.abs()
x-1
x/2
2/x
x**-1
x**0.5
x*2
x%2
-x
t.bmm(x[None],x[None])
x@x[0]
x[0]@x
x[None]@x
F.linear(x[None],x)
F.linear(x,x)
F.linear(x[None],x,x[0])
F.layer_norm(x,(4,))
F.batch_norm(x,None,None,training=True)
F.group_norm(x,2)
F.instance_norm(x[None])
F.rms_norm(x,(4,))
F.conv1d(x[None],x[None])
F.max_pool1d(x[None],2)
F.cosine_similarity(x,y)
x.logsumexp(0)
x.max(0)[0]
x.amax(0)
x.topk(2)[0]
x.sort()[0]
x.prod()
x.prod(0)
x.median()
x.tril()
x.diagonal()
x.masked_fill(x>0,0.)
x.gather(0,t.zeros(1,4,dtype=t.int64))
x.scatter(0,t.zeros(1,4,dtype=t.int64),y)
x.scatter(0,t.zeros(1,4,dtype=t.int64),1.)
x.index_select(0,t.tensor([0]))
x.squeeze(0)
x.unsqueeze(0)
x.view(-1)
x.sum((0,1))
x.mean((0,1))
x.exp()
x.roll(1)
x.T@x
x.addmm(y,y)
t.linalg.inv(x)
t.linalg.solve(x,y)
t.linalg.norm(x)
t.linalg.det(x)
t.logdet(x@x.T)
t.cdist(x,y)
t.trapezoid(x)
t.trapezoid(x,x)
F.channel_shuffle(x[None],2)
t.linalg.householder_product(x,x[0])
x//2
t.fft.fft(x)
t.fft.rfft(x).abs()
t.maximum(x,y)
t.lerp(x,y,.5)
t.addcmul(x,y,y)
t.hypot(x,y)
t.atan2(x,y)
t.relu(x)
t.sigmoid(x)
x.reshape(-1)
x.half()
x.float().double()
x.bfloat16()
t.cat([x,x])
t.nn.GRU(4,4)(x)[0]
t.nn.MultiheadAttention(4,2)(x,x,x)[0]
F.nll_loss(x,t.tensor([0,1,2,3]))
F.huber_loss(x,y)
F.hardtanh(x)
F.relu6(x)
F.leaky_relu(x)
F.elu(x)
F.softplus(x)
F.log_softmax(x,1)
F.hardswish(x)
F.mish(x)
F.prelu(x,x[0,:1])
F.threshold(x,0,0)
F.triplet_margin_loss(x,y,y)
F.cosine_embedding_loss(x,y,t.ones(4))
F.margin_ranking_loss(x,y,y)
F.hinge_embedding_loss(x,y)
F.poisson_nll_loss(x,y)
F.gaussian_nll_loss(x,y,y)
F.multilabel_soft_margin_loss(x,y)
F.unfold(x[None,None],2)
F.fold(x,(2,2),1)
F.adaptive_avg_pool2d(x[None],1)
F.avg_pool2d(x[None],2)
F.max_pool2d(x[None],2)
F.interpolate(x[None,None],scale_factor=2,mode='bilinear')
x.clamp(min=0).sum()
x.requires_grad_().detach().requires_grad_()*1
(x*1).add_(1)
(x*1).mul_(y)
(x*1).zero_()
(x*1).copy_(y)
(x*1).clamp_(0,1)
(x*1).relu_()
(x*1).masked_fill_(x>0,1.)
(x*1).index_add_(0,t.tensor([0]),y[:1])
(x*1).scatter_(0,t.zeros(1,4,dtype=t.int64),1.)
(x*1).exp_()
(x*1).sub_(1)
(x*1).div_(2)
(x*1).index_put_((t.tensor([0]),),t.tensor(1.))
(x*1).pow_(2)
(x*1).scatter_reduce_(0,t.zeros(1,4,dtype=t.int64),y[:1],'sum')
t.zeros(4,4).scatter_reduce_(0,t.zeros(4,4,dtype=t.int64),x,'amax',include_self=False)
t.zeros(4,4).index_reduce_(0,t.arange(4),x,'mean')
t.zeros(4,4).put_(t.arange(16).view(4,4),x)
t.zeros(4).addmv_(x,x[0])
(x*1).clamp_min_(0)
(x*1).square_()
(x*1).deg2rad_()
x.movedim(0,1)
x.swapaxes(0,1)
x.narrow(0,0,1)
x.select(0,0)
x.as_strided((2,),(1,))
x.unfold(0,2,1)
x.split(2)[0]
x.tensor_split(2)[0]
x.hsplit(2)[0]
x.take_along_dim(t.zeros(1,4,dtype=t.int64),0)
x.cummax(0)[0]
x.logcumsumexp(0)
x.nan_to_num()
x.sign()
x.floor()
x.frac()
x.trunc()
x.erf()
x.lgamma()
x.digamma()
x.expm1()
x.log1p()
x.log2()
x.rsqrt()
x.reciprocal()
x.sinc()
x.logit()
x.xlogy(y)
x.trace()
x.dist(y)
x.renorm(2,0,1.)
x.matrix_exp()
t.linalg.qr(x)[0]
t.linalg.svd(x)[0]
t.linalg.eigh(x)[0]
t.linalg.eigvalsh(x)
t.linalg.slogdet(x)[1]
t.linalg.pinv(x)
t.linalg.matrix_norm(x)
t.linalg.vector_norm(x)
t.linalg.matrix_power(x,2)
t.linalg.lstsq(x,y)[0]
t.linalg.solve_triangular(x,y,upper=True)
t.cholesky_solve(x,y)
t.cartesian_prod(x[0],x[0])
t.meshgrid(x[0],x[0],indexing='ij')[0]
t.broadcast_to(x,(2,4,4))
t.nanmean(x)
t.nansum(x)
t.cov(x)
t.corrcoef(x)
t.diff(x)
t.cumprod(x,0)
t.block_diag(x,x)
t.complex(x,x)
t.view_as_real(t.complex(x,x))
t.real(t.complex(x,x))
t.view_as_complex(x.view(4,2,2))
t.polar(x,x)
t.complex(x,x).conj()
t.complex(x,x).imag
t.complex(x,x).angle()
"""


def nodes(t, call):
    """The class's name, `name()` and the names of the next nodes."""
    t.manual_seed(0)
    x = (t.arange(16.0).reshape(4, 4) / 17 + t.eye(4) * 0.01 + 0.01).requires_grad_()
    y = t.arange(1, 17.0).reshape(4, 4) / 20
    node = eval(call, {"t": t, "x": x, "y": y, "F": t.nn.functional}).grad_fn
    after = [type(n).__name__ for n, _ in node.next_functions if n is not None]
    return type(node).__name__, node.name(), after


@pytest.mark.parametrize("call", CALLS.split("\n")[1:-1])
def test_nodes_are_named_as_torchs(call):
    assert nodes(mindtorch, call) == nodes(torch, call)


SLOPES = """
F.linear(x,x.detach())
F.linear(x,x.detach(),x.detach()[0])
F.batch_norm(x,None,None,training=True)
F.group_norm(x,2)
x[1:]
x[0]
x.diagonal()
x.unfold(0,2,1)
F.leaky_relu(x,.2)
F.silu(x)
F.elu(x)
F.celu(x)
F.selu(x)
F.softplus(x)
F.mish(x)
F.hardswish(x)
F.hardtanh(x)
F.relu6(x)
F.logsigmoid(x)
F.softshrink(x)
F.hardshrink(x)
F.threshold(x,.1,1.)
F.prelu(x,t.ones(1))
F.gelu(x)
t.sinc(x)
t.logit(x)
x[t.tensor([0,0])]
"""


def slope_node(t, call):
    """The name of the node of a gradient that may be derived."""
    x = (t.arange(16.0).reshape(4, 4) / 17 + 0.01).requires_grad_()
    y = eval(call, {"t": t, "x": x, "F": t.nn.functional})
    return type(t.autograd.grad(y.square().sum(), x, create_graph=True)[0].grad_fn).__name__


@pytest.mark.parametrize("call", SLOPES.split())
def test_nodes_of_gradients_are_named_as_torchs(call):
    assert slope_node(mindtorch, call) == slope_node(torch, call)


def chain(t, left, right, bias):
    """The whole graph of a product as text."""

    def text(node):
        inner = [text(n) for n, _ in node.next_functions if n is not None]
        return f"{type(node).__name__}({', '.join(inner)})"

    x, w = (t.ones(shape, requires_grad=True) for shape in (left, right))
    if bias is None:
        return text((x @ w).grad_fn)
    b = t.ones(right[0], requires_grad=True) if bias else None
    return text(t.nn.functional.linear(x, w, b).grad_fn)


@pytest.mark.parametrize("left", [(3,), (2, 3), (2, 2, 3)])
@pytest.mark.parametrize("bias", [True, False, None])
def test_products_are_walked_as_in_torch(left, bias):
    right = (3, 4) if bias is None else (4, 3)
    assert chain(mindtorch, left, right, bias) == chain(torch, left, right, bias)


def test_products_of_batches_are_walked_as_in_torch():
    shapes = ((5, 2, 3), (5, 3, 2), None)
    assert chain(mindtorch, *shapes) == chain(torch, *shapes)
