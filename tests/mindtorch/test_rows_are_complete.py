"""Counts what is outside rows: functions that compute without one, and rows without samples."""

import inspect

import pytest

import mindtorch
from mindtorch import nn  # noqa: F401 - layers load their rows
from mindtorch._compat import aliases
from mindtorch._functional import publish
from mindtorch._tensor import dtype
from mindtorch.ops.spec import OPS, make

mindtorch.add  # noqa: B018 - loads every row

LAYERS = [op for op in OPS.values() if op.body is not None and "nn" in op.places]


@pytest.mark.parametrize("op", LAYERS, ids=lambda op: op.name)
def test_body_of_a_layer_has_the_signature_of_its_row(op):
    parameters = inspect.signature(op.body).parameters.values()
    assert [p.name for p in parameters] == [a.name for a in op.schema.args]
    for parameter, arg in zip(parameters, op.schema.args, strict=True):
        assert (parameter.default is not parameter.empty) == arg.has_default, arg.name
        if arg.has_default:
            assert parameter.default == pytest.approx(arg.default), arg.name
        assert (parameter.kind is parameter.KEYWORD_ONLY) == arg.keyword_only, arg.name


def test_every_name_of_nn_functional_is_a_row():
    names = mindtorch.nn.functional.__all__
    assert len(names) > 110
    assert all(publish.LAYERS[name].name in OPS for name in names)


# Names whose functions make tensors from what is no tensor (sizes, numbers, data), or draw: they
# take `*size`, `requires_grad=` and generators, which no schema has. Each says which row it runs.
MAKERS = {
    "arange": "arange", "empty_strided": "empty_strided", "eye": "eye", "full": "full",
    "full_like": "full", "linspace": "linspace", "logspace": "logspace", "new_full": "full",
    "cauchy_": "_uniform", "empty_permuted": "empty_strided", "geometric_": "_uniform",
    "log_normal_": "_normal", "new_empty_strided": "empty_strided", "scalar_tensor": "full",
    "new_ones": "ones", "new_zeros": "zeros", "ones": "ones", "ones_like": "ones",
    "tril_indices": "tril_indices", "triu_indices": "triu_indices", "zeros": "zeros",
    "zeros_like": "zeros",
    **{f"{kind}_window": f"{kind}_window" for kind in ("bartlett", "blackman", "hamming", "hann",
                                                       "kaiser")},
    "bernoulli": "_uniform", "exponential_": "_uniform", "bernoulli_": "_uniform",
    "binomial": "_uniform", "poisson": "_uniform",
    "multinomial": "_uniform", "native_dropout": "_uniform", "normal": "_normal",
    "normal_": "_normal", "rand": "_uniform", "rand_like": "_uniform", "randint": "_integers",
    "randint_like": "_integers", "randn": "_normal", "randn_like": "_normal",
    "random_": "_integers", "randperm": "_permutation", "uniform_": "_uniform",
    "to": "_to_copy", "type": "_to_copy", "type_as": "_to_copy", "cpu": "_to_copy",
    "npu": "_to_copy", "conj_of": "conj", "bfloat16": "_to_copy", "bool": "_to_copy",
    "byte": "_to_copy", "cdouble": "_to_copy", "cfloat": "_to_copy", "char": "_to_copy",
    "double": "_to_copy", "float": "_to_copy", "half": "_to_copy", "int": "_to_copy",
    "long": "_to_copy", "short": "_to_copy", "range": "arange",
    # Functions whose gradient is one of their own: it passes straight through the rounding.
    "fake_quantize_per_channel_affine": "round", "fake_quantize_per_tensor_affine": "round",
    "fused_moving_avg_obs_fake_quant": "round",
    # Methods whose tensor is not the row's first argument, or that keep the dtype.
    "slice_inverse": "as_strided",
    "polygamma": "polygamma", "polygamma_": "polygamma", "float_power_": "float_power",
}  # fmt: skip
# Names that compute nothing: they hold memory, answer questions, keep settings or refuse.
NOTHING_COMPUTED = frozenset((
    "view_as_real",  # a row, of what is no conjugate
    "lobpcg",  # an iteration of rows, whose rounds depend on values
    "as_tensor", "asarray", "empty", "empty_like", "from_dlpack", "from_numpy", "new", "new_empty",
    "new_tensor", "tensor", "_assert", "broadcast_shapes", "can_cast", "is_complex",
    "is_floating_point", "is_inference", "is_nonzero", "is_storage", "is_tensor", "numel",
    "result_type", "typename", "get_float32_matmul_precision", "get_num_threads",
    "set_float32_matmul_precision", "set_num_threads", "use_deterministic_algorithms", "detach",
    "frombuffer", "from_file", "are_deterministic_algorithms_enabled",
    "set_deterministic_debug_mode",
    "is_deterministic_algorithms_warn_only_enabled", "get_deterministic_debug_mode",
    "set_default_tensor_type", "eig", "lstsq", "matrix_rank", "solve", "symeig",
    "detach_", "apply_", "cuda", "is_contiguous", "is_pinned", "is_same_size", "is_set_to",
    "is_shared", "item", "module_load", "numpy", "pin_memory", "record_stream", "resize_",
    "resize_as_", "set_",
    "share_memory_", "tolist", "as_subclass", "backward", "register_hook", "requires_grad_",
    "register_post_accumulate_grad_hook", "retain_grad",
    *(d.legacy + "Tensor" for d in dtype.ALL),
    "data_ptr", "dim", "element_size", "get_device", "is_signed", "ndimension", "nelement",
    "dim_order", "is_conj", "is_distributed", "is_neg", "map2_", "map_", "reinforce", "resize",
    "resize_as", "resize_as_sparse_", "size", "storage", "storage_type", "storage_offset",
    "stride", "untyped_storage",
    # What quantised tensors answer, and other tensors refuse.
    "dequantize", "int_repr", "q_per_channel_axis", "q_per_channel_scales",
    "q_per_channel_zero_points", "q_scale", "q_zero_point", "qscheme",
))  # fmt: skip


def written_by_hand(function):
    """Whether a public function is neither a row's entry nor a choice among rows."""
    home = file_of(function)
    of_rows = home.startswith("<mindtorch") or home.endswith(_OF_ROWS)
    return bool(home) and not of_rows


def file_of(function):
    """The file of the function that others wrap; empty for one that is not in Python."""
    return getattr(getattr(inspect.unwrap(function), "__code__", None), "co_filename", "")


_OF_ROWS = ("/_dispatch/entry.py", "/_dispatch/overloads.py")


# Files of torch.* that compute nothing: settings, seeds, questions, contexts, files on disk.
NOT_COMPUTING = (
    "mindtorch/__init__.py", "_compat/refusals.py", "_compat/checks.py", "_compat/warn_once.py",
    "_functional/settings.py", "_functional/printing.py",
    "_random/generator.py", "mindtorch/random.py", "_autograd/grad_mode.py",
    "autograd/anomaly_mode.py",
    "_tensor/device.py", "_tensor/dtype.py", "amp/__init__.py", "compiler/__init__.py",
    "func/batches.py", "mindtorch/serialization/__init__.py", "amp/switches.py",
    "_higher_order_ops/control.py",
    # Layouts other than strided: indices and values are ordinary tensors, computed by rows.
    "_functional/layouts.py", "sparse/_build.py", "sparse/_products.py", "mindtorch/_quantized.py",
)  # fmt: skip


def public_functions():
    """Every function of torch.* and Tensor.*, by name; Ops stand for what is not made yet."""
    for name, function in publish.FUNCTIONS.items():
        home = file_of(function)
        if not home.endswith(NOT_COMPUTING):
            yield name, function
    for name in dir(mindtorch):
        function = getattr(mindtorch, name)
        home = file_of(function)
        if "/mindtorch/" in home and not home.endswith(NOT_COMPUTING):
            yield name, function
    for name in sorted(vars(mindtorch.Tensor)):
        member = getattr(mindtorch.Tensor, name)  # a row's method becomes its entry
        home = file_of(member)
        if callable(member) and not name.startswith("__") and not home.endswith(NOT_COMPUTING):
            yield name, member


def test_no_function_computes_without_a_row():
    for name in mindtorch.__all__:
        getattr(mindtorch, name)  # some are made when asked for
    bodies = {op.body for op in OPS.values()}
    names = {
        name
        for name, function in public_functions()
        if written_by_hand(function)
        and inspect.unwrap(function) not in bodies
        and not name.startswith("_")
    }
    writers = {name + "_" for name in (*aliases.WRITERS, *aliases.LAYER_WRITERS)}
    assert sorted(names - set(MAKERS) - NOTHING_COMPUTED - writers) == []


def test_makers_name_rows():
    assert [name for name, row in MAKERS.items() if row not in OPS] == []


@pytest.mark.parametrize("space", ["linalg", "fft", "special"])
def test_every_function_of_the_module_is_a_row(space):
    module = getattr(mindtorch, space)
    names = set(module.__all__) - {"LinAlgError"}
    assert len(names) > 20
    assert sorted(n for n in names if written_by_hand(getattr(module, n))) == []


def test_every_row_has_samples_or_says_why_not():
    assert [
        op.name for op in OPS.values() if op.testing.samples is None and not op.testing.unsampled
    ] == []


def test_no_row_has_samples_and_a_reason_for_having_none():
    assert [
        op.name for op in OPS.values() if op.testing.samples is not None and op.testing.unsampled
    ] == []


def test_every_alias_spells_a_row():
    assert not [name for name in aliases.ALIASES.values() if name not in OPS]
    assert not [name for name in aliases.ALIASES if name in OPS]
    bases = {op.base_name for op in OPS.values() if op.writes.inplace}
    writers = {aliases.ALIASES.get(name, name) for name in aliases.WRITERS}
    assert sorted(writers - bases) == ["detach", "resize_as"]


@pytest.mark.parametrize(
    "op", [op for op in OPS.values() if op.api.variadic is True], ids=lambda op: op.name
)
def test_a_lone_tensor_is_a_list_of_one(op):
    matrix = mindtorch.arange(9.0).reshape(3, 3)
    lead = ("ii->i",) if op.name == "einsum" else ()
    function, lone = (
        getattr(mindtorch, op.name),
        matrix[0] if op.name == "meshgrid" else matrix,
    )
    alone, listed = function(*lead, lone), function(*lead, [lone])
    one = listed if isinstance(listed, mindtorch.Tensor) else listed[0]
    # atleast_1d and its kin give a tensor for a tensor, and a tuple for a list.
    first = alone if isinstance(alone, mindtorch.Tensor) else alone[0]
    assert first.tolist() == one.tolist()


def test_overloads_are_chosen_by_number_names_and_classes():
    x = mindtorch.tensor([[1.0, 5.0], [4.0, 3.0]])
    assert x.max().item() == 5
    assert x.max(1).indices.tolist() == [1, 0]
    assert x.max(axis=0).values.tolist() == [4, 5]
    assert x.max(x * 2).tolist() == [[2, 10], [8, 6]]
    assert x.var(False).item() == x.var(correction=0).item()
    assert [part.shape for part in x.split([1, 1])] == [part.shape for part in x.split(1)]
    assert (2 / x).tolist() == mindtorch.div(mindtorch.full_like(x, 2), x).tolist()


def test_overloads_refuse_in_torchs_words_what_no_row_takes():
    with pytest.raises(TypeError, match=r"max\(\) received an invalid combination of arguments"):
        mindtorch.ones(2).max("dim")
    with pytest.raises(TypeError, match=r"got \(int, unknown=int, keepdims=bool\), but expected"):
        mindtorch.ones(2).max(0, keepdims=True, unknown=1)
    with pytest.raises(TypeError, match=r"\* \(int dim, bool keepdim = False\)"):
        mindtorch.ones(2).max("dim")


def test_results_with_names_are_torchs_named_tuples():
    pair = mindtorch.ones(2, 3).sort()
    assert isinstance(pair, mindtorch.return_types.sort)
    assert pair.__match_args__ == ("values", "indices")
    with pytest.raises(AttributeError, match="no attribute 'add'"):
        mindtorch.return_types.add  # noqa: B018


@pytest.mark.skipif(not mindtorch.npu.is_available(), reason="NPU not available")
def test_unique_along_a_dimension_stays_on_the_device(monkeypatch):
    rows = mindtorch.tensor([[2, 1], [0, 5], [2, 1]]).to("npu")
    monkeypatch.setattr(mindtorch.Tensor, "cpu", None)
    values, inverse = rows.unique(dim=0, return_inverse=True)
    monkeypatch.undo()
    assert values.device.type == "npu"
    assert values.tolist() == [[0, 5], [2, 1]]
    assert inverse.tolist() == [1, 0, 1]


def test_cuts_given_as_data_have_no_places_on_meta():
    cuts = mindtorch.empty(2, dtype=mindtorch.int64, device="meta")
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        mindtorch.empty(5, device="meta").tensor_split(cuts)


def test_views_take_sizes_lists_and_dtypes_in_every_spelling():
    x = mindtorch.arange(6.0)
    forms = (x.view(2, 3), x.view((2, 3)), x.view([2, 3]), x.view(2, -1), x.view(size=(2, 3)))
    assert {tuple(t.shape) for t in forms} == {(2, 3)}
    assert x.view(mindtorch.int32).dtype is x.view(dtype=mindtorch.int32).dtype
    out = mindtorch.empty(0)
    assert mindtorch.div(x, 2, out=out) is out
    assert mindtorch.div(x, 2, rounding_mode="floor", out=out).tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("field", ["smaples", "aclnns", "_schema"])
def test_a_declaration_with_an_unknown_field_is_refused(field):
    with pytest.raises(TypeError, match=f"an op has no field '{field}'"):
        make("planted(Tensor self) -> Tensor", "custom", **{field: ()})


def test_a_misspelt_field_is_told_the_nearest_one():
    with pytest.raises(TypeError, match="nearest: 'samples'"):
        make("planted(Tensor self) -> Tensor", "custom", smaples=())
    assert "planted" not in OPS
