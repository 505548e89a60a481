"""`t[...]` reads and writes what torch's does: values, strides, aliasing, gradients, errors."""

import pytest
from agreement import agree

import mindtorch


def index(t, text):
    return eval(text, {"t": t, "s": slice, "T": t.tensor})


READS = [
    "0", "-1", "1, 2", "s(1, 3)", "s(None, None, 2)", "s(-2, None)", "...", "None", "..., 0", "0, ...",
    "s(None), 1", "None, 1, None", "(s(0, 2), s(1, 3), 0)", "T([0, 2])", "[0, 2]", "[[0, 1], [2, 0]]",
    "T([[0, 1], [1, 2]])", "s(None), T([0, 2])", "s(None), s(None), T([0, 3, 1])", "T([0, 1]), T([1, 2])",
    "T([0, 1]), s(None), T([1, 2])", "s(None), T([0, 1]), T([1, 2])", "T([[0], [1]]), T([[1, 2]])",
    "0, T([0, 2])", "T([0, 2]), 0", "T([0, 1]), None, T([1, 2])", "..., T([0, 1])", "T([-1, -2])",
    "T([True, False, True])", "T([[True, False, True], [False, True, True], [True, True, False]])",
    "s(None), T([True, False, True])", "T(1)", "T([], dtype=t.int64)", "[]", "True", "False",
    "T([0, 1], dtype=t.int32)", "T([0, 1], dtype=t.uint8)", "s(1, 1)", "s(5, 9)", "3", "T([3])", "0, 0, 0, 0",
    "'a'", "1.5", "T([0.5])", "T([True, False])", "s(None, None, -1)", "T([0, 1]), T([0, 1, 2])", "(..., ...)",
    "s(None), 7", "T(True)", "T(False)", "None, T([0, 1])", "(True, T([0, 1]))", "[0, 1], [0, 1]", "(s(None), [1, 0])",
    "[s(None), 0]", "range(2)", "T([0, 1]), ..., T([1, 2])", "0, T([0, 1]), s(None)", "s(None), 0, T([0, 1])",
]  # fmt: skip


@pytest.mark.parametrize("text", READS)
def test_reading_agrees_with_torch(text):
    agree(lambda t: t.arange(36.0).view(3, 3, 4)[index(t, text)], text=False)


@pytest.mark.parametrize("text", READS)
def test_reading_a_transposed_tensor_agrees_with_torch(text):
    agree(lambda t: t.arange(36.0).view(4, 3, 3).permute(1, 2, 0)[index(t, text)], text=False)


@pytest.mark.parametrize("text", READS)
def test_gradients_of_reading_agree_with_torch(text):
    def run(t):
        x = t.arange(36.0).requires_grad_()
        (x.view(3, 3, 4)[index(t, text)] * 2).sum().backward()
        return x.grad

    agree(run, text=False)


@pytest.mark.parametrize(
    "value", ["7", "2.5", "True", "T(3.0)", "T([1.0])", "t.full((1, 4), 9.0)", "T([1, 2, 3, 4])"]
)
@pytest.mark.parametrize("text", READS)
def test_writing_agrees_with_torch(text, value):
    def run(t):
        x = t.arange(36.0).view(3, 3, 4)
        x[index(t, text)] = index(t, value)
        return x, x._version

    agree(run, text=False)


@pytest.mark.parametrize("text", READS)
def test_gradients_of_writing_agree_with_torch(text):
    def run(t):
        x = t.arange(36.0).requires_grad_()
        w = t.tensor(2.0).requires_grad_()
        y = (x * 1).view(3, 3, 4)
        y[index(t, text)] = w
        (y * y).sum().backward()
        return x.grad, w.grad

    agree(run, text=False)


@pytest.mark.parametrize("text", ["0", "s(None)", "...", "None", "T(0)", "()", "True", "T(True)"])
def test_indexing_a_scalar_tensor_agrees_with_torch(text):
    agree(lambda t: t.tensor(5.0)[index(t, text)], text=False)


@pytest.mark.parametrize("text", READS[:10])
def test_views_alias_their_base(text):
    def run(t):
        x = t.zeros(3, 3, 4)
        x[index(t, text)].add_(1)
        return x

    agree(run)


MASKED = ["T([True, False, True])", "T([False] * 3)", "T([1, 0, 1], dtype=t.uint8)"]


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("mask", MASKED)
def test_index_put_takes_masks_again_and_again(mask, accumulate):
    def run(t):
        results = []
        for flip in (False, True):
            x, value = t.arange(12.0).view(3, 4).requires_grad_(), t.ones(4).requires_grad_()
            kept = index(t, mask)
            kept = kept.logical_not().to(kept.dtype) if flip else kept
            (x.index_put((kept,), value, accumulate) * 2).sum().backward()
            results += [x.index_put((kept,), value, accumulate), x.grad, value.grad]
        return results

    agree(run)


def test_index_put_takes_masks_on_an_npu():
    x = mindtorch.zeros(3, 2, device="npu")
    for keep in ([True, False, True], [False, True, False]):
        mask = mindtorch.tensor(keep, device="npu")
        put = x.index_put((mask,), mindtorch.ones(2, device="npu"))
        assert put.cpu().tolist() == [[float(k)] * 2 for k in keep]


def test_an_index_on_cpu_reads_and_writes_any_device():
    x = mindtorch.arange(12.0).reshape(3, 4).npu().requires_grad_()
    rows, mask = mindtorch.tensor([2, 0]), mindtorch.tensor([True, False, True])
    for index in (rows, mask, (slice(None), rows), (rows, rows), x.detach().cpu() > 5):
        near = tuple(i.npu() if isinstance(i, mindtorch.Tensor) else i for i in index) if (
            isinstance(index, tuple)) else index.npu()  # fmt: skip
        assert x[index].tolist() == x[near].tolist()
        a, b = x.detach().clone(), x.detach().clone()
        a[index] = b[near] = 7.0
        assert a.tolist() == b.tolist() != x.tolist()
    x[rows].sum().backward()
    assert x.grad.tolist() == [[1.0] * 4, [0.0] * 4, [1.0] * 4]
    with pytest.raises(RuntimeError, match=r"either on cpu or on the same device .*\(cpu\)"):
        mindtorch.ones(3)[rows.npu()]


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("dtype", ["uint8", "bool", "float32", "int32"])
def test_no_indices_may_be_of_any_dtype(dtype, device):
    x = mindtorch.arange(3.0).to(device)
    none = mindtorch.tensor([], dtype=getattr(mindtorch, dtype)).to(device)
    assert mindtorch.gather(x, 0, none).shape == (0,)
    for write in ("scatter", "scatter_add", "scatter_"):
        assert getattr(x.clone(), write)(0, none, x).tolist() == [0, 1, 2]
    assert x.scatter(0, none, 5.0).tolist() == [0, 1, 2]
    assert x.scatter_reduce(0, none, x, "amax").tolist() == [0, 1, 2]


# `i`: indices that came from the host.
BEYOND = [
    "x[[0, 3]]", "x[:, [7]]", "x[i([0, 9])[1:]]", "x[i([[1, 3], [0, 2]]).t()]", "x.take(i([12]))",
    "x[i([3])] = 1.0", "x[:, i([5])] = x[:, :1]", "x.put_(i([12]), t.ones(1, device=d))",
    "x.index_select(0, i([-1]))", "x.index_add_(0, i([5]), x[:1])", "x.index_copy_(0, i([3]), x[:1])",
    "x.index_fill_(1, i([4]), 2)", "x.gather(1, i([[4]]))", "x.scatter_(0, i([[5]]), 1.0)",
    "x.scatter_add(0, i([[-4]]), x[:1])", "t.empty(0, 4, device=d).gather(0, i([[0]]))",
    "t.nn.functional.embedding(i([5]), x)", "t.nn.functional.cross_entropy(x, i([0, -100, 4]))",
    "t.nn.functional.multi_margin_loss(x, i([0, 1, 4]))",
    "t.nn.functional.embedding_bag(i([0, 1]), x, i([1]))", "t.nn.EmbeddingBag(3, 2).to(d)(i([[7]]))",
]  # fmt: skip
WRITTEN = ["fill_(0)", "copy_(t.tensor([0]))", "data.zero_()", "add_(-5)", "set_(i([0]))",
           "untyped_storage().fill_(0)", "detach().mul_(0)", "__setitem__(0, 0)"]  # fmt: skip


def test_on_npu_an_index_from_the_host_is_refused_as_on_cpu():
    for text in BEYOND:
        assert agree(lambda t, text=text: indexed(t, text))[0] == "raised", text
    for write in WRITTEN:  # what was copied is forgotten
        agree(lambda t, w=write: indexed(t, f"[j.{w}, x[j]][1].cpu()", "j = i([5])"))
    mindtorch.npu.synchronize()


def indexed(t, text, first=""):
    where = "npu" if t is mindtorch else "cpu"
    scope = {"t": t, "d": where, "i": lambda v: t.tensor(v, device=where)}
    scope["x"] = t.arange(12.0).view(3, 4).to(where)
    exec(first, scope)
    exec(f"result = {text}" if "] = " not in text else text, scope)
    return scope.get("result")


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_gradients_of_means_count_more_than_a_half_holds(device):
    source = mindtorch.ones(600, dtype=mindtorch.bfloat16, device=device, requires_grad=True)
    places = mindtorch.zeros(600, dtype=mindtorch.int64, device=device)
    source.new_zeros(1).scatter_reduce(0, places, source, "mean", include_self=False).backward()
    assert source.grad.unique().tolist() == [mindtorch.tensor(1 / 600).bfloat16().item()]
