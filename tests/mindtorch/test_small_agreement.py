"""Small answers that programs print: strides of dims of one element, probabilities, names."""

import gc
import weakref
from importlib import import_module

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")


def columns(lib):
    """Tensors whose dims of one element have strides of their own."""
    yield lib.ones(1, 5)[:, :1]
    yield lib.ones(3, 1).t()
    yield lib.ones(1, 4).t()
    for size, strides in (((1, 3), (7, 1)), ((3, 1), (1, 7)), ((2, 1, 3), (3, 9, 1)),
                          ((1, 3, 1), (5, 1, 9))):  # fmt: skip
        yield lib.empty_strided(size, strides).fill_(1.0)
    yield lib.ones(5, 4)[:, :1]
    yield lib.ones(2, 1, 3, 4).contiguous(memory_format=lib.channels_last)


def results(lib, t):
    """What is made of a tensor: some results keep its strides, others have those of its order."""
    new = (t.clone(), lib.empty_like(t), lib.zeros_like(t), lib.ones_like(t), lib.full_like(t, 2.0),
           t.to(lib.float64))  # fmt: skip
    pointwise = (t + 1, 2 - t, t > 0, t * lib.ones(()), t + t, t.relu(), -t, t.exp(), t / 2,
                 lib.where(t > 0, t, t), t + lib.ones(1))  # fmt: skip
    return [r.stride() for r in (*new, *pointwise)]


def test_strides_of_dims_of_one_element_are_those_of_torch():
    for ours, theirs in zip(columns(mindtorch), columns(torch), strict=True):
        assert results(mindtorch, ours) == results(torch, theirs), theirs.stride()


@pytest.mark.parametrize("name", ["dropout", "dropout2d", "dropout3d", "alpha_dropout",
                                  "feature_alpha_dropout"])  # fmt: skip
def test_probabilities_are_numbers(name):
    def story(lib):
        function = getattr(lib.nn.functional, name)
        x = lib.ones(1, 2, 3, 3)
        for p in (0.5, lib.tensor(0.5), lib.tensor([0.5]), 2.0):
            lib.manual_seed(0)
            try:
                yield function(x, p, True).tolist()
            except (TypeError, ValueError) as error:
                yield type(error), str(error)

    assert list(story(mindtorch)) == list(story(torch))


@pytest.mark.parametrize("module", ["cuda", "distributed"])
def test_names_that_no_module_has_are_absent(module):
    for lib in (mindtorch, torch):
        with pytest.raises(AttributeError, match=f"module 'torch.{module}' has no attribute 'foo'"):
            getattr(lib, module).foo  # noqa: B018


def test_quantized_lists_and_empty_ones():
    def story(lib):
        q = lib.quantize_per_tensor(lib.tensor([1.0, 2.0]), 0.1, 0, lib.quint8)
        empty = lib._empty_affine_quantized([2, 3], scale=0.5, zero_point=1, dtype=lib.qint8)
        return (
            [t.tolist() for t in lib.dequantize([q, q])], type(lib.dequantize([q])),
            tuple(empty.shape), empty.q_scale(), empty.q_zero_point(),
        )  # fmt: skip

    assert story(mindtorch) == story(torch)


def test_an_empty_file_has_nothing_to_say(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    for lib in (mindtorch, torch):
        with pytest.raises(EOFError) as caught:
            lib.load(tmp_path / "empty")
        assert repr(caught.value) == repr(EOFError())


def test_parts_of_sparse_tensors_are_copied():
    def story(lib):
        s = lib.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
        return s.narrow_copy(0, 0, 1).to_dense().tolist(), str(s.narrow_copy(1, 1, 2))

    assert story(mindtorch) == story(torch)


def test_readable_code_has_types_and_places():
    def story(lib):
        class Net(lib.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = lib.nn.Linear(2, 2)
                self.rest = lib.nn.Sequential(lib.nn.ReLU())

            def forward(self, x, y=None):
                return lib.relu(self.first(x)) + x.sum(), self.rest(x)

        graph = lib.fx.symbolic_trace(Net())
        yield graph.print_readable(False)
        passes = import_module(f"{lib.__name__}.fx.passes.shape_prop")
        passes.ShapeProp(graph).propagate(lib.ones(1, 2), None)
        yield graph.print_readable(False)
        texts = []

        def backend(module, inputs):
            texts.append(module.print_readable(False))
            return module.forward

        lib.compile(lambda t: t.sin() + 1, backend=backend)(lib.ones(2))
        yield from texts

    assert list(story(mindtorch)) == list(story(torch))


def test_subnormal_numbers_are_zeros_where_a_thread_says_so():
    def told(lib):
        for mode in (True, False):
            numbers = lib.set_flush_denormal(mode), lib.tensor([1e-323], dtype=lib.float64)
            values = numbers[1], lib.tensor([1e-40]) * 1, lib.tensor([1e-30]) * 1e-12
            yield numbers[0], [v.item() for v in values], float("1e-323")

    assert list(told(mindtorch)) == list(told(torch))


@pytest.mark.parametrize("kind", ["max_pool2d", "adaptive_max_pool2d"])
def test_places_of_many_maxima_of_one_window(kind):
    """More planes than numpy takes at a time, each of one window."""
    function, size = getattr(mindtorch.nn.functional, kind), 1 if kind[0] == "a" else 2
    x = mindtorch.rand(130, 64, 2, 2, dtype=mindtorch.float64)
    values, places = function(x, size, return_indices=True)
    assert mindtorch.equal(x.flatten(2).gather(2, places.flatten(2)), values.flatten(2))


def storages_without_memory(lib):
    for make in (lambda: lib.ones(2, device="meta").untyped_storage(),):
        for call in (
            lambda s: s[0], lambda s: s.tolist(), lambda s: s.cpu(), lambda s: len(s.clone()),
            lambda s: len(s.fill_(1)), lambda s: len(s.copy_(s)),
        ):  # fmt: skip
            try:
                yield call(make())
            except NotImplementedError as error:
                yield str(error)


def small_answers(lib):
    yield 2 * lib.Size([1, 2])
    yield lib.gradient(lib.tensor([1 + 1j, 2, 4]), spacing=2j)[0].tolist()
    with pytest.raises(AttributeError) as error:
        lib.ones(2, 3).to_sparse().dim_order()
    yield str(error.value)


def layers_at_their_edges(lib):
    f, nn = lib.nn.functional, lib.nn
    for shape, grid in (((2, 0, 3, 3), (2, 4, 4, 2)), ((0, 2, 3, 3), (0, 2, 2, 2))):
        image, places = lib.ones(shape, requires_grad=True), lib.zeros(grid, requires_grad=True)
        f.grid_sample(image, places, align_corners=False).sum().backward()
        yield image.grad.shape, places.grad.tolist()
    row, label = lib.tensor([0.1, 0.5, 0.2]), lib.tensor([1])
    yield f.multi_margin_loss(row, label, reduction="none").shape
    yield lib.ones(2).new(lib.Size([])).shape
    yield f.cosine_similarity(lib.tensor([[1, 2]]), lib.tensor([[2.0, 1.0]])).tolist()
    box = nn.ParameterDict({"b": lib.ones(1)})
    box["a"] = lib.ones(1)
    yield list(box.copy()), list(box | nn.ParameterDict({"0": lib.ones(1)}))
    x = lib.tensor(0.3, dtype=lib.float64, requires_grad=True)
    yield lib.autograd.gradcheck(lib.sin, (x,), fast_mode=True)
    for call in (
        lambda: nn.Fold((4, 5), (2, 2), dilation=8)(lib.ones(1, 12, 12)),
        lambda: f.fractional_max_pool2d(lib.ones(1, 2, 5, 5), 3, output_ratio=(0.5, 0.5, 0.5)),
        lambda: f.fractional_max_pool2d(lib.ones(1, 2, 5, 5), 3, output_ratio=[0.5]),
        lambda: f.cosine_similarity(lib.ones(2, 2, dtype=lib.int8), lib.ones(2, 2, dtype=lib.int8)),
    ):
        with pytest.raises((RuntimeError, ValueError, IndexError)) as error:
            call()
        yield type(error.value).__name__, str(error.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("story", [storages_without_memory, small_answers, layers_at_their_edges])
def test_small_things_answer_as_torchs(story):
    assert str(list(story(mindtorch))) == str(list(story(torch)))


def wrong_bags(lib):
    """What a wrong index says: bags that a library sums have words of their own."""
    for dtype in (lib.float32, lib.float64):
        table = lib.ones(3, 2, dtype=dtype)
        for options in ({}, {"mode": "sum"}, {"mode": "max"}, {"padding_idx": 0}):
            with pytest.raises(RuntimeError) as error:
                lib.nn.functional.embedding_bag(
                    lib.tensor([0, 3]), table, lib.tensor([0]), **options
                )
            yield str(error.value)


def small_modules(lib):
    table = lib.nn.Embedding(0, 0, sparse=True)
    table(lib.tensor([], dtype=lib.int64)).sum().backward()
    yield str(table.weight.grad)
    unknown = lib.nn.parameter.UninitializedParameter()
    unknown.materialize(3)
    yield unknown.shape
    rows, signs = lib.ones(2, 2), lib.ones(2)
    yield lib.margin_ranking_loss(rows, rows + 1, signs).tolist()
    pad = lib.nn.utils.rnn.pack_padded_sequence
    packed = pad(lib.ones(3, 2, 1), [3, 2])
    for call in (packed.cpu, lambda: packed.cpu("cpu"), lambda: packed.cpu(device="cpu")):
        yield call() is packed
    yield packed.cpu(dtype=lib.float64).data.dtype, packed.cpu(lib.int8).data.dtype
    for shape in ((0, 0), (1, 1, 1, 1)):
        with pytest.raises(RuntimeError) as error:
            pad(lib.ones(shape), lib.ones(shape))
        yield str(error.value)


@pytest.mark.parametrize("story", [wrong_bags, small_modules])
def test_small_modules_answer_as_torch_does(story):
    assert str(list(story(mindtorch))).replace("mindtorch", "torch") == str(list(story(torch)))


@pytest.mark.parametrize("kind", ["LambdaLR", "StepLR", "CyclicLR", "ReduceLROnPlateau"])
def test_an_optimizer_with_a_scheduler_is_freed_at_once(kind):
    optim = mindtorch.optim
    options = {"LambdaLR": (lambda epoch: 1.0,), "StepLR": (1,), "CyclicLR": (0.1, 0.2)}
    optimizer = optim.SGD(mindtorch.nn.Linear(1, 1).parameters(), lr=0.1, momentum=0.9)
    scheduler = getattr(optim.lr_scheduler, kind)(optimizer, *options.get(kind, ()))
    gc.disable()
    try:
        reference = weakref.ref(optimizer)
        del scheduler, optimizer
        assert reference() is None
    finally:
        gc.enable()
