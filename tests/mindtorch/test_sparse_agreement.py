"""Sparse tensors: what is shown, computed, refused and derived, against torch's."""

import copy
import pickle
import re
import warnings

import pytest

import mindtorch
from tests.mindtorch.agreement import agree, torch

# Tensors that the lines speak of: by coordinates, one of them with a place twice, with whole rows,
# and by compressed rows; d, D are ordinary.
SCENE = """
a = torch.sparse_coo_tensor([[0, 1, 1, 0], [2, 0, 2, 2]], [3., 4., 5., 6.], (2, 3))
b = torch.sparse_coo_tensor([[0, 1], [0, 2]], [1., 2.], (2, 3)).coalesce()
h = torch.sparse_coo_tensor([[0, 2]], [[1., 2.], [3., 4.]], (3, 2))
c = a.coalesce()
r = torch.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1., 2., 3.], (2, 3))
d = torch.arange(6.).reshape(3, 2)
D = torch.arange(6.).reshape(2, 3) + 1
q = torch.tensor([[1., 2, 0, 0], [3, 4, 0, 0], [0, 0, 0, 0], [0, 0, 5, 0]])
B = torch.stack([q, q * 2])
H = torch.stack([q, q * 3], -1)
"""

SHOWN = """
a
c
h
r
c + b
c - b
c * b
b * c
a * 2
2 * a
a / 2
c // 2
a * D
D * a
D + a
D - a
r + r
r * 2
r * r
r + D
r @ d
a @ d
torch.mm(a, d)
a.matmul(d[:, 0])
torch.sparse.mm(a, b.t())
r @ r.t()
D @ b.t()
torch.sparse.addmm(torch.ones(2, 2), a, d, beta=2, alpha=3)
torch.nn.functional.linear(d.t(), a)
torch.sparse.sampled_addmm(r, D, d @ D)
torch.hspmm(a, d)
torch.dsmm(a, d)
torch.sparse.FloatTensor(a._indices(), a._values(), (2, 3))
torch.sparse.DoubleTensor(a._indices(), a._values())
torch.sparse.LongTensor(2, 3)
a.new(a._indices(), a._values() + 1, a.size())
a.new(2, 3)
torch.sparse.HalfTensor(torch.Size([4]))
torch.bmm(torch.stack([a, b]), torch.stack([d, d]))
torch.sparse.sum(a)
torch.sparse.sum(a, 0)
torch.sparse.sum(a, [0, 1])
torch.sparse.sum(h, 1)
torch.sparse.sum(a, dtype=torch.float64)
a.sum(1, keepdim=True)
r.sum(1, keepdim=True)
torch.sparse.softmax(a, 1)
torch.sparse.log_softmax(a, 0)
torch.sparse.spdiags(torch.arange(9.).reshape(3, 3), torch.tensor([0, -1, 2]), (3, 3))
a.t()
r.transpose(0, 1)
a.permute(1, 0)
a.unsqueeze(1)
a[0]
a[:, 1]
a[0, 2]
a.select(0, 1)
a.index_select(1, torch.tensor([2, 0]))
torch.cat([a, b])
torch.stack([a, b])
torch.hstack([a, b])
-a
a.abs()
a.sin()
c.sqrt()
a.pow(2)
a.norm()
a.double()
a.bool()
a.to(torch.int64)
a.clone()
a.detach()
a.sparse_mask(b)
D.sparse_mask(b)
D.sparse_mask(r)
torch.zeros_like(a)
torch.sparse_coo_tensor((2, 3))
d.to_sparse()
d.to_sparse(1)
d.to_sparse_csr()
d.to_sparse_csc()
D.to_sparse_bsr((1, 3))
D.to_sparse_bsc((2, 1))
r.to_sparse()
c.to_sparse_csc()
a.clone().mul_(2)
a + a
a - a.double()
a.movedim(0, 1)
a.mT
a.real
a.new_zeros(2)
torch.empty_like(a)
a.clone().sparse_resize_and_clear_((5, 5), 2, 0)
D.clone().add_(a)
torch.sparse_bsr_tensor([0, 1, 2], [0, 1], [[[1., 2.], [3., 4.]], [[5., 6.], [7., 8.]]])
torch.sparse_coo_tensor([[0, 1]], [1, 2], (3,), dtype=torch.float64)
torch.sparse_coo_tensor([[0, 1]], [1., 2.], requires_grad=True)
B.to_sparse_csr()
B.to_sparse_csc().to_sparse_csr()
B.to_sparse_bsr((2, 2))
B.to_sparse_bsr((2, 2)).to_sparse_bsc((2, 2))
B.to_sparse_bsr((1, 2)).to_sparse()
B.to_sparse_csr()[1]
B.to_sparse_bsc((2, 2)).mT
B.to_sparse_bsr((2, 2)).to_dense()
H.to_sparse_csr(dense_dim=1)
H.to_sparse_csr(dense_dim=1).to_dense()
H.to_sparse_bsc((2, 2), dense_dim=1).select(2, 1)
H.to_sparse(2).to_sparse_csc()
(B + 1).sparse_mask(B.to_sparse_bsr((2, 2)))
torch.ones_like(B.to_sparse_csr())
torch.zeros_like(B.to_sparse_bsr((2, 2)))
torch.zeros(2, 3, 4, layout=torch.sparse_csc)
r.new_zeros(2, 2)
torch.relu(-r)
r.clone().fill_(2)
torch.sparse_csr_tensor([[0, 1, 2], [0, 1, 2]], [[0, 1], [1, 0]], torch.arange(4.).view(2, 2))
torch.sparse_csr_tensor([0, 1, 2], [0, 1], torch.ones(2, 3), (2, 2, 3), check_invariants=True)
""".strip().split("\n")

SAID = """
D.to_sparse_bsr((1, 3)).to_sparse_csr()
D.to_sparse_bsr((1, 3)).to_sparse_bsc((2, 1))
a.to_sparse(layout=torch.sparse_csr, dense_dim=0)
a.to_sparse(layout=torch.sparse_csr, blocksize=(1, 1))
a.to_sparse_bsr((0, 1))
r.to_sparse(1)
d.to_sparse_csr(dense_dim=1)
torch.ones(3).to_sparse_csr()
torch.ones(3).to_sparse_csc()
torch.sparse.FloatTensor([1, 2], [3.0])
torch.sparse.FloatTensor(a._values())
torch.sparse.FloatTensor(a._indices().int(), a._values(), (2, 3))
isinstance(a, torch.sparse.FloatTensor), isinstance(a, torch.sparse.IntTensor)
a.layout, a.is_sparse, a.is_sparse_csr, r.is_sparse_csr, a.type(), r.layout
a._nnz(), c._nnz(), a.is_coalesced(), a.sparse_dim(), h.dense_dim(), d.sparse_dim(), d.dense_dim()
a.stride(), a.is_contiguous(), a.numel(), len(a), a.requires_grad, a.element_size()
a.indices()
r.indices()
d.coalesce()
d.values()
a.crow_indices()
d.crow_indices()
a + 1
a.flatten()
a.contiguous()
a.expand(2, 2, 3)
a.imag
a.to_dense(dtype=torch.float64)
a.sum(5)
a ** 0
a.bmm(a)
r.cos()
h.transpose(0, 1)
a + D
a / D
a.numpy()
a.tolist()
a.item()
bool(a)
a.storage()
a.nbytes
r.sum(1)
D.copy_(a)
torch.sparse_coo_tensor([[0, 1]], [1., 2., 3.], (3,))
torch.sparse_coo_tensor([[0, 1]], [1, 2], (3, 3))
torch.sparse_coo_tensor([[0, 5]], [1., 2.], (3,), check_invariants=True)
torch.sparse_coo_tensor([[0, -1]], [1., 2.], (3,), check_invariants=True)
torch.sparse_csr_tensor([0, 2, 1], [0, 1], [1., 2.], (2, 2), check_invariants=True)
torch.sparse_csr_tensor([1, 2, 2], [0, 1], [1., 2.], (2, 2), check_invariants=True)
torch.sparse_csr_tensor([0, 3, 2], [0, 1], [1., 2.], (2, 2), check_invariants=True)
torch.sparse_csr_tensor([0, 0, 2], [0, 0], [1., 2.], (2, 2), check_invariants=True)
torch.sparse_csr_tensor([0, 1, 2], [0, 5], [1., 2.], (2, 2), check_invariants=True)
torch.sparse_csr_tensor([0, 2], [0, 1], [1., 2.], (2, 2), check_invariants=True)
torch.sparse_bsr_tensor([0, 1], [0], torch.ones(2, 2, 2), (4, 4), check_invariants=True)
type(a).__name__, type(r).__name__, torch.typename(a), a.float() is a, a.clone() is a, r._nnz()
torch.nn.Parameter(a.double()), type(torch.nn.Parameter(r)).__name__
a.requires_grad_().coalesce().grad_fn.name(), a.sum(0).grad_fn.name(), a.to_dense().grad_fn.name()
c.requires_grad_().values().grad_fn.name(), c._values().grad_fn, (c - c).grad_fn.name()
d.requires_grad_().to_sparse().grad_fn.name(), d.to_sparse(1).grad_fn.name()
torch.sparse.softmax(a.requires_grad_(), 1).grad_fn.name()
torch.sparse_coo_tensor([[0, 1]], d[0].requires_grad_(), (3,)).grad_fn.name()
torch.zeros(2, 3, layout=torch.sparse_coo), torch.zeros(2, 3, layout=torch.sparse_csr)
torch.ones(2, 3, layout=torch.sparse_coo)
torch.zeros(3, layout=torch.sparse_csr)
torch.nn.functional.relu(a), torch.nn.Dropout().eval()(a), a[None]
r @ D.t().double()
a @ d.double()
r @ a.t()
r.long() @ d.long()
a + b.t()
a * b.t()
1 + a
a[2]
a[0, 1, 0]
r[0:1]
torch.cat([a, D])
torch.cat([a, h.t()])
torch.cat([r, r])
torch.sparse.mm(r, d, "prod")
torch.sparse.mm(r, d, "most")
torch.sparse.softmax(a, 2)
torch.sparse.softmax(a.long(), 1)
torch.sparse.sum(D)
D.sparse_mask(a.t())
r.stride()
r.reshape(6)
a.apply_(abs)
torch.sparse_compressed_tensor([0, 1], [0], [1.])
torch.sparse_coo_tensor([0, 1], [3., 4.])
torch.sparse_coo_tensor([[1, 0]], [3., 4.], (2,), is_coalesced=True, check_invariants=True)
torch.sparse_csr_tensor([0, 1, 2], [0, 1])
torch.testing.assert_close(a, a * 2)
torch.testing.assert_close(r, r * 2)
torch.testing.assert_close(a, b)
torch.testing.assert_close(r, torch.sparse_csr_tensor([0, 1, 3], [0, 2, 1], [1., 2., 3.], (2, 3)))
torch.testing.assert_close(a, a.double())
torch.stack([q, q + 1]).to_sparse_csr()
torch.zeros(0, 2, 3).to_sparse_csc()
B.to_sparse_csr().to_sparse_bsr((2, 2))
B.to_sparse_csr()[0, 1]
B.to_sparse_csr().transpose(0, 1)
B.to_sparse_csr().t()
B.to_sparse_csr() * B.to_sparse_csr()
H.to_sparse_csr(dense_dim=1).mT
H.to_sparse_csr(dense_dim=1).dense_dim(), B.to_sparse_csc().sparse_dim(), B.to_sparse_csr()._nnz()
a.unbind()
a._dimI(), h._dimV(), D._to_sparse()
a.new_ones(2)
r - r
r / 2
r.add_(1.0)
r.unsqueeze(0)
torch.sparse_csr_tensor(torch.tensor([[0, 1, 2], [0, 1, 2]]), torch.tensor([[0, 1], [1, 0]]), torch.ones(2, 2), (2, 2), check_invariants=True)
torch.sparse_csr_tensor(torch.tensor([[0, 1, 2], [0, 1, 2]]), torch.tensor([[0, 1], [1, 0]])[0], torch.ones(2, 2), (2, 2, 2), check_invariants=True)
torch.sparse_csr_tensor(torch.tensor([[0, 1, 2], [0, 1, 2]]), torch.tensor([[0, 1], [1, 0]]), torch.ones(2, 2)[0], (2, 2, 2), check_invariants=True)
torch.sparse_csr_tensor(torch.tensor([[0, 1, 2], [0, 1, 2]]), torch.tensor([[0, 1], [1, 0]]), torch.ones(2, 2), (3, 2, 2), check_invariants=True)
torch.sparse_csr_tensor(torch.tensor([[0, 1, 2], [0, 1, 2]]), torch.tensor([[0, 1], [1, 0]]).int(), torch.ones(2, 2), (2, 2, 2), check_invariants=True)
torch.sparse_csr_tensor(torch.tensor([[0, 1, 2], [0, 1, 2]]), torch.tensor([[0, 1], [1, 0]]) - 1, torch.ones(2, 2), (2, 2, 2), check_invariants=True)
torch.sparse_csr_tensor(torch.tensor([[0, 1, 2], [0, 1, 2]]), torch.tensor([[0, 1], [1, 0]])[:, :1], torch.ones(2, 2), (2, 2, 2), check_invariants=True)
torch.sparse_bsr_tensor([0, 1], [0], torch.ones(1, 2, 2), (3, 2), check_invariants=True)
""".strip().split("\n")


SAID += [line.replace("csr", "csc") for line in SAID if "csr_tensor([" in line and "True" in line]


def scene(lib):
    scope = {"torch": lib}
    exec(SCENE, scope)
    return scope


def evaluated(line):
    def run(lib):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return repr(eval(line, scene(lib))).replace("mindtorch.", "torch.")

    return run


@pytest.mark.parametrize("line", SHOWN)
def test_results_are_shown_as_torch_shows_them(line):
    agree(evaluated(line))


@pytest.mark.parametrize("line", SAID)
def test_questions_and_refusals(line):
    agree(evaluated(line))


REFUSED = ("a.cos()", "a.exp()", "a.mean()", "a.max()", "a == a", "a.view(3, 2)", "torch.svd(a)",
           "torch.nonzero(a)", "torch.ones_like(a)", "r.mean()", "a[0:1]", "a.std()",
           "torch.chunk(a, 2)", "a > 0", "a.unique()")  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
def test_what_has_no_sparse_form_is_refused_and_named(line):
    with pytest.raises(NotImplementedError, match="Could not run") as error:
        eval(line, scene(mindtorch))
    kernel = str(error.value).partition(" with arguments")[0]
    with pytest.raises(NotImplementedError, match=f"^{re.escape(kernel)} "):
        eval(line, scene(torch))


def gradients(build):
    def run(lib):
        matrix = lib.tensor([[1.0, 0, 2], [0, 3, 0]])
        sparse = matrix.to_sparse().requires_grad_()
        dense = lib.arange(6.0).reshape(3, 2).requires_grad_()
        build(lib, sparse, dense).backward()
        shown = (
            None
            if sparse.grad is None
            else repr(sparse.grad.coalesce()).replace("mindtorch.", "torch.")
        )
        return shown, dense.grad

    return run


@pytest.mark.parametrize(
    "build",
    [
        lambda t, s, d: (t.sparse.mm(s, d) ** 2).sum(),
        lambda t, s, d: (s.to_dense() ** 2).sum(),
        lambda t, s, d: t.sparse.sum(s * s),
        lambda t, s, d: t.sparse.sum(s, 0).to_dense().pow(2).sum(),
        lambda t, s, d: (t.sparse.softmax(s, 1).to_dense() @ d).sum(),
        lambda t, s, d: (s.t().to_dense() * d).sum(),
    ],
)
def test_gradients_go_to_values(build):
    agree(gradients(build), digits=5)


def test_gradients_go_through_values_that_were_given():
    def run(lib):
        v = lib.tensor([1.0, 2.0], requires_grad=True)
        x = lib.sparse_coo_tensor([[0, 1], [1, 0]], v, (2, 2))
        (x @ lib.tensor([[1.0], [3.0]])).sum().backward()
        dense = lib.ones(2, 2, requires_grad=True)
        (dense.to_sparse().to_dense() * 3).sum().backward()
        return v.grad, dense.grad, x.is_leaf, x.requires_grad

    agree(run)


@pytest.mark.parametrize(
    "build",
    [
        lambda lib, x, d: lib.sparse.mm(x, d),
        lambda lib, x, d: lib.sparse.sum(x),
        lambda lib, x, d: x.to_dense().pow(2),
        lambda lib, x, d: (x * 2).to_dense(),
        lambda lib, x, d: x.coalesce().values(),
    ],
)
def test_a_place_listed_twice_has_one_gradient(build):
    def run(lib):
        x = lib.sparse_coo_tensor([[0, 1, 0], [2, 1, 2]], [1.0, 2.0, 3.0], (2, 3)).requires_grad_()
        build(lib, x, lib.arange(6.0).reshape(3, 2)).sum().backward()
        return repr(x.grad.coalesce()).replace("mindtorch.", "torch."), x.grad.to_dense()

    agree(run)


def test_a_sparse_parameter_trains_and_keeps_the_gradient_that_it_was_given():
    def run(lib):
        p = lib.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (4,)).requires_grad_()
        for write in (p.mul_, p.copy_, p.sub_):
            with pytest.raises(RuntimeError, match=r"^a leaf Variable"):
                write(p.detach())
        p.grad = lib.sparse_coo_tensor([[1, 1]], [1.0, 5.0], (4,))
        yield repr(p.grad), repr(copy.deepcopy(p).grad)
        (p.to_dense() ** 2).sum().backward()
        yield repr(p.grad.coalesce()), p.grad is p.grad
        for wrong in (lib.ones(4), lib.ones(3).to_sparse(), 3):
            with pytest.raises((RuntimeError, TypeError)) as error:
                p.grad = wrong
            yield str(error.value)
        scaler = lib.amp.GradScaler("cpu", init_scale=4.0)
        sgd = lib.optim.SGD([p], lr=0.5)
        for _ in range(2):
            sgd.zero_grad()
            scaler.scale((p.to_dense() ** 2).sum()).backward()
            scaler.step(sgd)
            yield repr(p.coalesce()), repr(p.grad.coalesce()), p.is_leaf

    agree(lambda lib: [repr(v).replace("mindtorch.", "torch.") for v in run(lib)])


def test_autograd_grad_gives_a_sparse_gradient():
    def run(lib):
        sparse = lib.tensor([[1.0, 0], [0, 3]]).to_sparse().requires_grad_()
        (gradient,) = lib.autograd.grad((sparse.to_dense() * 3).sum(), sparse)
        return repr(gradient).replace("mindtorch.", "torch.")

    agree(run)


def test_a_sparse_parameter_is_learned_and_its_hooks_see_its_gradient():
    def run(t):
        weight, seen = t.nn.Parameter(t.eye(3).to_sparse()), []
        weight.register_hook(lambda grad: seen.append(grad.to_dense()))
        weight.register_hook(lambda grad: grad * 2)
        step = t.optim.SGD([weight], 0.125)
        t.sparse.mm(weight, t.arange(6.0).reshape(3, 2)).sum().backward()
        step.step()
        return seen, weight.dim(), weight.to_dense()

    agree(run, digits=5)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("layout", ["coo", "csr", "bsr"])
def test_gradients_of_what_is_there_are_checked(layout, fast):
    whole = mindtorch.tensor([[1.0, 0, 2], [0, 3, 0]], dtype=mindtorch.float64)
    options = {"layout": getattr(mindtorch, f"sparse_{layout}")}
    options |= {"blocksize": (1, 3)} if layout == "bsr" else {}
    check = mindtorch.sparse.as_sparse_gradcheck(mindtorch.autograd.gradcheck)
    leaf = whole.to_sparse(**options).requires_grad_()
    assert check(lambda s: (s.to_dense() ** 2).sum(0), leaf, masked=True, fast_mode=fast)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        check(lambda s: s.to_dense() * s.detach().to_dense(), leaf, masked=True, fast_mode=fast)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_products_are_reduced_as_asked(reduce):
    agree(lambda t: t.sparse.mm(scene(t)["r"], scene(t)["d"], reduce))


WRITING = ("a.t_()", "a.transpose_(0, 1)", "r.transpose_(0, 1)")


@pytest.mark.parametrize("line", WRITING)
def test_writing_forms_write(line):
    s = scene(mindtorch)
    name = line[0]
    expected = s[name].to_dense().t().tolist()
    assert eval(line, s) is s[name]
    assert s[name].to_dense().tolist() == expected
    assert s[name].shape == (3, 2)


UNREADABLE = ("a.set_(d)", "d.set_(a)", "a.share_memory_()", "torch.from_dlpack(a)", "a.fill_(1)",
              "torch.rand_like(a)", "torch.softmax(a, 1)", "a._array",
              "torch.nn.functional.softmax(a, 1)")  # fmt: skip


@pytest.mark.parametrize("line", UNREADABLE)
def test_what_wants_memory_is_refused(line):
    with pytest.raises((NotImplementedError, BufferError)):
        eval(line, scene(mindtorch))


@pytest.mark.parametrize("name", ["a", "c", "h", "r"])
def test_files_are_torchs(name, tmp_path):
    """What one library writes, the other reads."""
    ours, theirs = scene(mindtorch)[name], scene(torch)[name]
    mindtorch.save({"x": ours}, tmp_path / "ours.pt")
    torch.save({"x": theirs}, tmp_path / "theirs.pt")
    for lib in (mindtorch, torch):
        for file in ("ours.pt", "theirs.pt"):
            assert repr(lib.load(tmp_path / file)["x"]) == repr(theirs)


def test_copies_and_files_keep_places_and_values():
    a = scene(mindtorch)["a"]
    for other in (copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert other.layout is a.layout
        assert other.to_dense().tolist() == a.to_dense().tolist()
        assert other._values().data_ptr() != a._values().data_ptr()


# Lines of the scene whose functions run on an npu: the values, not the words about the device.
ON_NPU = [
    line
    for line in SHOWN
    if not re.search(
        r"spdiags|bs[rc]|layout=|_csr_tensor|requires_grad|\[1, 2\]|\(\(2, 3\)\)", line
    )
]


@pytest.mark.parametrize("line", ON_NPU[::3])
def test_an_npu_computes_the_same(line):
    mindtorch.npu.set_device(0)
    host = scene(mindtorch)
    device = {k: v.to("npu") if isinstance(v, mindtorch.Tensor) else v for k, v in host.items()}
    line = line.replace("torch.ones(2, 2)", "torch.ones(2, 2).to(d.device)")
    line = line.replace("torch.tensor([2, 0])", "torch.tensor([2, 0]).to(d.device)")
    ours, expected = eval(line, device), eval(line, host)
    assert ours.device.type == "npu"
    shown = ours.to_dense().cpu().double()
    assert mindtorch.allclose(shown, expected.to_dense().double(), rtol=1e-5)


assert torch
