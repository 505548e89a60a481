"""Details met in programs written by others: results, words of errors and warnings, as torch's."""

import io
import pickle
import re
import warnings
from importlib import import_module

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")


def outcome(lib, device, function):
    """What `function` gives or raises, and what it warns of, as text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(lib, device)
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
    return f"{result}\n" + "\n".join(str(w.message) for w in caught)


def reduced(name, include):
    def run(lib, device):
        start = lib.tensor([1.0, 2.0, 3.0], device=device)
        index = lib.tensor([0, 0, 2], device=device)
        source = lib.tensor([5.0, -4.0, 2.0], device=device)
        return start.scatter_reduce(0, index, source, name, include_self=include).tolist()

    return run


def reduced_gradient(lib, device):
    start = lib.zeros(2, device=device, requires_grad=True)
    index = lib.tensor([0], device=device)
    start.scatter_reduce(0, index, lib.ones(1, device=device), "max").sum().backward()


def packed(lib, device):
    padded = lib.arange(12.0, device=device).view(3, 4)
    pack = lib.nn.utils.rnn.pack_padded_sequence
    some = pack(padded, lib.tensor([1, 2]), enforce_sorted=False)
    return some.data.tolist(), some.batch_sizes.tolist(), some.sorted_indices.tolist()


def packed_in_order(lib, device):
    padded = lib.zeros(3, 4, device=device)
    lib.nn.utils.rnn.pack_padded_sequence(padded, lib.tensor([2, 1]))


def multiplied(*shapes):
    def run(lib, device):
        lib.matmul(*(lib.zeros(shape, device=device) for shape in shapes))

    return run


def written_view(lib, device):
    base = lib.ones(3, device=device, requires_grad=True) * 2
    base[1:].mul_(3)
    return base.grad_fn.name(), type(base.grad_fn).__name__


def compressed(lib, device):
    parts = ([0, 1, 2], [0, 1, 1], [1.0, 2.0])
    lib.sparse_csr_tensor(*(lib.tensor(p) for p in parts), size=(2, 2), check_invariants=True)


def hooked(lib, device):
    layer = lib.nn.Linear(2, 2).to(device)
    layer.register_full_backward_hook(lambda *_: None)
    layer(lib.ones(1, 2, device=device)).sum().backward()


def checked_in_vain(lib, device):
    layer = lib.nn.Linear(2, 2).to(device)
    x = lib.ones(1, 2, device=device)
    lib.utils.checkpoint.checkpoint(layer, x, use_reentrant=True)


CASES = {
    **{f"{n} {i}": reduced(n, i) for n in ("max", "min", "amax") for i in (True, False)},
    "scatter gradient": reduced_gradient, "packed": packed, "packed in order": packed_in_order,
    "batches": multiplied((2, 4, 3, 8), (2, 4, 4, 8)),
    "batches broadcast": multiplied((4, 3, 8), (2, 1, 4, 8)),
    "copy slices": written_view, "csr": compressed, "hook without input": hooked,
    "checkpoint without gradient": checked_in_vain,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_as_torch(name, dev):
    expected = outcome(torch, "cpu", CASES[name])
    assert outcome(mindtorch, dev, CASES[name]) == expected


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_autocast_to_other_dtypes_is_off(dtype, dev):
    def run(lib, device):
        x = lib.ones(2, 2, device=device)
        with lib.autocast(device, dtype=getattr(lib, dtype)):
            return str((x @ x).dtype)

    expected = outcome(torch, "cpu", run)
    if dev == "npu":  # as torch_npu 2.13.0 says, which takes float32 too
        expected = re.sub("In CPU|CPU Auto", lambda m: m[0].replace("CPU", "npu"), expected)
        kinds = "torch.float16, torch.bfloat16, torch.float32 currently"
        expected = expected.replace("torch.bfloat16, torch.float16 currently", kinds)
        expected = "torch.float32\n" if dtype == "float32" else expected
    assert outcome(mindtorch, dev, run) == expected


@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 2)])
def test_svd_of_nan(shape):
    def run(lib, device):
        x = lib.ones(shape)
        x.view(-1)[-1] = float("nan")
        return lib.linalg.svd(x)

    assert outcome(mindtorch, "cpu", run) == outcome(torch, "cpu", run)


def test_a_function_without_a_sparse_form():
    def run(lib, device):
        return lib.eye(2).to_sparse().exp()

    ours, theirs = (outcome(lib, "cpu", run) for lib in (mindtorch, torch))
    assert ours[:160] == theirs[:160]


def _unwindowed(lib):
    frames = lib.stft(lib.ones(16), 8, return_complex=True)
    lib.istft(frames, 8)
    lib.stft(lib.ones(16), 8, return_complex=True)


@pytest.mark.parametrize("run", [
    _unwindowed, lambda lib: lib.triangular_solve(lib.ones(2, 1), lib.eye(2)),
])  # fmt: skip
def test_warnings_of_calls(run):
    """Each time here, as other tests may have met those that are given once."""
    messages = []
    for lib in (mindtorch, torch):
        before = lib.is_warn_always_enabled()
        lib.set_warn_always(True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(lib)
        lib.set_warn_always(before)
        messages.append([str(w.message).partition(" (Triggered")[0] for w in caught])
    assert messages[0] == messages[1]
    assert messages[0]


@pytest.mark.parametrize(
    "shape", [(3,), (3, 4), (2, 3, 4), (3, 1), (0, 4), (3, 0), (2, 0, 4)], ids=str
)
@pytest.mark.parametrize("indices", [[9], [-1], [0, 9]], ids=str)
def test_an_index_outside_is_refused_in_the_words_of_its_dimension(shape, indices):
    def run(dim):
        return lambda lib, _: lib.ones(shape).index_select(dim, lib.tensor(indices)).shape

    for dim in range(-len(shape), len(shape)):
        assert outcome(mindtorch, "cpu", run(dim)) == outcome(torch, "cpu", run(dim))


def test_what_distributions_can_is_asked_of_their_classes():
    for name in torch.distributions.__all__:
        ours, theirs = (getattr(lib.distributions, name) for lib in (mindtorch, torch))
        for member in ("has_rsample", "has_enumerate_support"):
            values = getattr(ours, member, None), getattr(theirs, member, None)
            assert values[0] == values[1] or not isinstance(values[1], bool), name


@pytest.mark.parametrize(
    "call",
    [
        lambda f, whole, real: f.jvp(lambda x: x * 1.5, (whole,), (real,)),
        lambda f, whole, real: f.jvp(lambda x: x * 1.5, (real,), (whole,)),
        lambda f, whole, real: f.linearize(lambda x: x * 1.5, whole),
        lambda f, whole, real: f.jacfwd(lambda x: x * 1.5)(whole),
        lambda f, whole, real: f.hessian(lambda x: (x * 1.5).sum())(whole),
        lambda f, whole, real: f.jacfwd(lambda x, y: x * y)(real, whole),
    ],
)
def test_forward_derivatives_refuse_integers(call):
    def run(lib, _):
        return call(lib.func, lib.ones(2, dtype=lib.int64), lib.ones(2)).tolist()

    ours, theirs = (outcome(lib, "cpu", run).partition("\n")[0] for lib in (mindtorch, torch))
    assert ours == theirs  # torch also warns, of its own use of torch.jit


NARROW = """
t.zeros(1,2,4,3).index_copy_(2,t.tensor([3]),t.ones(1,1,1,3))
t.zeros(2,3).index_copy(-1,t.tensor([1]),t.ones(3,1))
t.nn.utils.rnn.pad_sequence([t.ones(2),t.ones(1,1)])
t.nn.utils.rnn.pad_sequence([t.ones(1,2),t.ones(1,3)],True)
t.nn.utils.rnn.pad_sequence([t.tensor(1),t.tensor([1])])
t.segment_reduce(x,'sum',lengths=t.tensor([2,3]))
t.segment_reduce(x,'sum',lengths=t.tensor([8,-2]))
t.segment_reduce(x,'sum',lengths=t.tensor([2,3]),unsafe=True)
t.segment_reduce(x,'sum',offsets=t.tensor([1,2,6]))
t.segment_reduce(x.view(2,3),'sum',lengths=t.tensor([1,1,1]),axis=1)
t.func.vjp(lambda v:(v,v>0),x)
t.func.vjp(lambda v:(v,v),x)[1](x)
t.func.jacrev(lambda v:v.long())(x)
t.func.jvp(lambda v:v>0,(x,),(x,))
t.func.hessian(lambda v:v>0)(x)
n([t.ones(2,3)]*2).view(-1)
n([t.ones(2,3)]*2).view(2,-1)
n([t.ones(2,3)]*2).view(2,2,-1)
n([t.ones(2,3)]*2).view(2,-1,3,1).values()
n([t.ones(2,3),t.ones(2,4)]).values()
n([t.ones(2,3),t.ones(2,4)]).to_padded_tensor(0.)
n([t.ones(2,3,4),t.ones(2,5,4)]).offsets()
n([t.ones(2,3),t.ones(1,4)])
type(t.nn.utils.rnn.pack_sequence([x])).__mro__[1].__name__
encoder(t.zeros(2,3,4),src_key_padding_mask=t.zeros(2,4)>0)
encoder(t.zeros(2,3,4),src_key_padding_mask=t.zeros(2,3,1)>0)
encoder.train()(t.zeros(2,3,4),src_key_padding_mask=t.zeros(2,4)>0)
t.vmap(lambda v:f.batch_norm(v,x[:3],x[3:],training=True))(t.zeros(4,2,3))
t.vmap(lambda v:f.instance_norm(v,x[:3],x[3:]))(t.zeros(4,2,3,5))
t.vmap(lambda v,a,b:f.batch_norm(v,a,b,training=True))(*[t.ones(4,2,3)]*3).shape
t.distributions.StudentT(-x)
t.distributions.FisherSnedecor(-1.,1.)
t.distributions.FisherSnedecor(1.,2.).expand((2,))._gamma2
tr.CorrCholeskyTransform()(t.zeros(2,4))
tr.CorrCholeskyTransform()(t.zeros(5))
tr.CorrCholeskyTransform().inv(t.zeros(2,3))
t.stft(t.zeros(2,20),64,return_complex=True)
t.stft(t.zeros(1,2,99),64,return_complex=True)
t.stft(t.zeros(1,2,99),64,return_complex=True,center=False)
t.stft(t.zeros(()),64,return_complex=True)
t.stft(t.zeros(1,1,2,99),64,return_complex=True)
t.eye(4).to_sparse().to_sparse_bsr((3,3))
t.eye(4).to_sparse_csr().to_sparse_bsc((3,3))
t.eye(4).to_sparse_bsr((0,3))
t.eye(4).to_sparse_bsr((2,))
t.eye(4).to_sparse_bsr(2).values()
load(pickle.dumps({"a": 1}, 4))
load(pickle.dumps({"a": 1}, 2))
load(pickle.dumps(3, 0))
load(b"hello world")
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", NARROW.split("\n")[1:-1])
def test_calls_that_do_not_fit(call):
    def run(t, _):
        t.distributions.Distribution.set_default_validate_args(True)  # torch.compile ends it
        layer = t.nn.TransformerEncoderLayer(4, 2, 4, batch_first=True)
        names = {
            "load": lambda data: t.load(io.BytesIO(data)), "pickle": pickle,
            "t": t, "f": t.nn.functional, "tr": t.distributions.transforms, "x": t.arange(6.0),
            "encoder": t.nn.TransformerEncoder(layer, 1).eval(),
            "n": lambda rows: t.nested.nested_tensor(rows, layout=t.jagged),
        }  # fmt: skip
        return re.sub(r"\bj\d+", "j", str(eval(call, names)))

    ours, theirs = (
        re.sub(r"\bj\d+", "j", outcome(lib, "cpu", run)).partition("\n")[0]
        for lib in (mindtorch, torch)
    )
    assert ours == theirs


REFUSED = """
t.nn.functional.ctc_loss(y[None,None],i[None],(2,),(1,))
t.nn.functional.ctc_loss(y[:,None].log_softmax(2),i[None,None],(2,),(1,))
t.nn.functional.ctc_loss(y.log_softmax(1),i[None],(2,),(2,),reduction='none').ndim
t.nn.functional.ctc_loss(y.log_softmax(1),t.cat([i,i]),(2,),(1,))
t.meshgrid(y*1e-4,indexing='ij')
t.meshgrid(y.repeat(2,2,9),indexing='ij')
t.meshgrid(y.repeat(1,1,5)*1e-4,indexing='ij')
t.kaiser_window(4,beta=8.)
t.hamming_window(4,True,beta=.5)
t.hamming_window(4,beta=.4,alpha=.5,periodic=False).tolist()
t.quasirandom.SobolEngine(2).draw(0)
t.quasirandom.SobolEngine(2).draw(-1)
t.quasirandom.SobolEngine(2).draw(2.5)
(t.set_warn_always(True),t.searchsorted(y.t().contiguous().t(),y.t().contiguous().t()).tolist())
(t.bucketize(y.t(),y[0]).tolist(),t.set_warn_always(False))
t.gradient(y,spacing=(1.,),dim=(0,1))
t.gradient(y,spacing=(1.,))
y.__setitem__(..., t.zeros(1,4))
y[:,1:].copy_(t.zeros(1,4))
t.nn.functional.conv1d(y[None]+0j,t.ones(1,1,2))
t.nn.functional.conv1d(y[None],t.ones(1,3,2)+0j)
t.nn.functional.conv1d(y[None]+0j,t.ones(1,3,2,dtype=t.bool))
t.amp.GradScaler('cpu').step(None,closure=lambda:1)
t.load(io.BytesIO(b'hello'))
t.load(io.BytesIO(b'a text'))
[t.zeros(4).put(t.tensor([0]),t.ones(1)).tolist() for _ in range(4)][0]
[t.nn.functional.embedding_bag(t.arange(4),t.ones(4,2),t.tensor([0,2])).tolist() for _ in 'abc'][0]
t.nn.functional.embedding_bag(t.arange(4),t.ones(4,2),t.tensor([1,2]))
t.nn.functional.embedding_bag(t.arange(1,5),t.ones(4,2),t.tensor([0,2]))
[t.lu_unpack(t.ones(2,2),t.tensor([2,2],dtype=t.int32))[0].tolist() for _ in range(4)][0]
t.lu_unpack(t.ones(2,2),t.tensor([2,3],dtype=t.int32))
t.use_deterministic_algorithms(True)
t.zeros(4).put(t.tensor([0]),t.ones(1))
t.zeros(4).put_(t.tensor([0]),t.ones(1))
t.nn.functional.max_unpool1d(*t.nn.functional.max_pool1d(t.arange(4.)[None],2,return_indices=True),2)
t.ones(2).resize_(4).tolist()
t.use_deterministic_algorithms(False)
t.Generator().get_offset()
import_module(f'{t.__name__}.utils.tensorboard')
(t.promote_types(t.complex32,t.float32),t.result_type(t.ones(1).half(),1j),t.result_type(1j,t.ones(()).half()))
t.set_default_dtype(t.float64)
t.optim.Adagrad([t.nn.Parameter(y.double())]).state_dict()
t.set_default_dtype(t.float32)
t.Generator('meta')
t.optim.SGD([('a',p:=t.nn.Parameter(y)),('a',p)]).state_dict()['param_groups'][0]['params']
adaptive(y,t.tensor([0,6]))
adaptive(y[:,:2],t.tensor([3,0]))
adaptive(y[:0],i[:0]).output
adaptive(y,t.tensor([0,3])).loss.backward() or [p.grad is None for p in adaptive.parameters()]
t._C._autograd._push_saved_tensors_default_hooks(lambda v:v,lambda v:v+1)
(lambda v:(v*v).backward() or v.grad)(t.ones((),requires_grad=True))
t._C._autograd._pop_saved_tensors_default_hooks()
(lambda v:(v*v).backward() or v.grad)(t.ones((),requires_grad=True))
(lambda v:(v.backward(),v.backward()))(t.ones(2,requires_grad=True).exp().sum())
"""


@pytest.mark.filterwarnings("ignore")
def test_calls_of_programs_that_are_refused_or_warn():
    def run(call):
        def of(t, _):
            names = {
                "t": t, "io": io, "import_module": import_module,
                "y": t.arange(6.0).view(2, 3), "i": t.tensor([1, 2]),
                "adaptive": t.nn.AdaptiveLogSoftmaxWithLoss(3, 6, [2, 4], div_value=1.0),
            }  # fmt: skip
            return eval(call, names)

        return of

    for call in REFUSED.split("\n")[1:-1]:
        ours, theirs = (
            re.sub(r" ?\(Triggered.*", "", outcome(lib, "cpu", run(call)))
            for lib in (mindtorch, torch)
        )
        assert ours == theirs, call
