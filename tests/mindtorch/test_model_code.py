"""What other people's model code does around its layers, beside torch or by torch's documents."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import mindtorch as mt


def test_gradients_follow_a_parameter_that_changed_dtype():
    layer = mt.nn.Linear(3, 2).double()
    layer(mt.ones(2, 3, dtype=mt.float64)).sum().backward()
    assert layer.weight.grad.dtype is mt.float64
    assert layer.bias.grad.dtype is mt.float64


def test_gradients_follow_data_that_was_replaced():
    leaf = mt.zeros(2, requires_grad=True)
    leaf.data = mt.ones(3, dtype=mt.float64)
    (leaf * np.pi).sum().backward()
    assert leaf.grad.shape == (3,)
    assert leaf.grad.tolist() == [np.pi] * 3


def test_the_version_is_that_of_the_torch_it_behaves_as():
    assert mt.__version__.startswith("2.")
    assert mt.version.__version__ == mt.__version__


def test_a_hub_download_is_checked_and_kept(tmp_path, monkeypatch):
    source = tmp_path / "source"
    source.mkdir()
    mt.save({"w": mt.arange(3)}, source / "tiny.pth")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    url = (source / "tiny.pth").as_uri()
    assert mt.hub.load_state_dict_from_url(url)["w"].tolist() == [0, 1, 2]
    assert (tmp_path / "home/hub/checkpoints/tiny.pth").exists()
    with pytest.raises(RuntimeError, match=r'invalid hash value \(expected "0123456789"'):
        mt.hub.download_url_to_file(url, str(tmp_path / "other.pth"), "0123456789")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["home", "source"]


def test_entry_points_of_a_hubconf_are_called(tmp_path, monkeypatch):
    monkeypatch.setattr(mt.hub, "_state", {"dir": str(tmp_path)})
    folder = tmp_path / "me_net_main"  # as if it were downloaded
    folder.mkdir()
    (folder / "layers.py").write_text("def double(x):\n    return 2 * x\n")
    (folder / "hubconf.py").write_text(
        "from layers import double as _double\ndependencies = ['numpy']\n"
        "def net(n, by=1):\n    'A net.'\n    return _double(n) * by\n"
    )
    assert mt.hub.load(str(folder), "net", 3, by=2, source="local") == 12
    assert mt.hub.load("me/net:main", "net", 3) == 6
    assert (mt.hub.list("me/net:main"), mt.hub.help("me/net:main", "net")) == (["net"], "A net.")
    torch = pytest.importorskip("torch", reason="torch is the oracle")
    for wrong in ({"source": "ftp"}, {"source": "local", "model": "no"}):
        texts = []
        for hub in (mt.hub, torch.hub):
            with pytest.raises((ValueError, RuntimeError)) as info:
                hub.load(str(folder), **{"model": "net", **wrong})
            texts.append((info.type, str(info.value)))
        assert texts[0] == texts[1]


def test_attention_kernels_can_be_asked_for_without_effect():
    from mindtorch.nn.attention import SDPBackend, sdpa_kernel

    q = mt.ones(1, 1, 2, 4)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        assert mt.nn.functional.scaled_dot_product_attention(q, q, q).shape == (1, 1, 2, 4)
    with pytest.raises(AssertionError), sdpa_kernel("flash"):
        pass


def test_spmm_of_dense_matrices_is_mm():
    a, b = mt.rand(2, 3), mt.rand(3, 4)
    assert mt.equal(mt.spmm(a, b), mt.mm(a, b))


def test_backends_import_as_modules_and_lend_contexts():
    import mindtorch.backends.cudnn as cudnn

    assert cudnn is mt.backends.cudnn
    with cudnn.flags(enabled=False), mt.backends.cuda.sdp_kernel(enable_flash=True):
        assert not cudnn.is_available()


def test_lbfgs_leaves_the_last_point_unevaluated():
    torch = pytest.importorskip("torch", reason="torch is the oracle")

    def calls(t):
        w = t.tensor([3.0, -2.0], requires_grad=True)
        optimizer, seen = t.optim.LBFGS([w], lr=0.5, max_iter=4), []

        def closure():
            optimizer.zero_grad()
            loss = (w**4).sum()
            loss.backward()
            seen.append(loss.item())
            return loss

        optimizer.step(closure)
        optimizer.step(closure)
        return seen

    assert calls(mt) == pytest.approx(calls(torch), rel=1e-4)


def test_new_makes_tensors_of_its_own_kind():
    x = mt.zeros(1, dtype=mt.float64)
    assert x.new(2, 3).shape == (2, 3)
    assert x.new([1, 2]).tolist() == [1.0, 2.0]
    assert x.new([1, 2]).dtype is x.new().dtype is x.new(mt.Size((4,))).dtype is mt.float64


def test_the_assert_function_raises_with_its_message():
    mt._assert(True, "kept")
    with pytest.raises(AssertionError, match="kept"):
        mt._assert(False, "kept")


@pytest.mark.parametrize(("spelled", "meant"), [("divide", "div"), ("arctan", "atan")])
def test_second_spellings_are_functions_methods_and_writers(spelled, meant):
    args = (3.0,) if meant == "div" else ()
    x = mt.tensor([0.25, -0.5])
    expected = getattr(mt, meant)(x, *args)
    assert mt.equal(getattr(mt, spelled)(x, *args), expected)
    assert mt.equal(getattr(x, spelled)(*args), expected)
    assert mt.equal(getattr(x, spelled + "_")(*args), expected)
    assert mt.equal(x, expected)


def test_every_alias_names_something():
    from mindtorch._compat import aliases as _aliases

    assert all(callable(getattr(mt.nn.functional, name)) for name in mt.nn.functional.__all__)
    assert all(callable(getattr(mt.Tensor, name + "_")) for name in _aliases.WRITERS)
    assert mt.conv2d(mt.ones(1, 1, 3, 3), mt.ones(1, 1, 3, 3)).item() == 9.0
    assert mt.relu_(mt.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]


COMPOSED = {
    "deg2rad": lambda t: t.deg2rad(t.tensor([180.0, 90.0])),
    "rad2deg": lambda t: t.tensor([1.0, 2.0]).rad2deg(),
    "logit": lambda t: t.logit(t.tensor([0.3, 1.0]), 1e-3),
    "vdot": lambda t: t.vdot(t.tensor([1 + 2j, 3j]), t.tensor([2 - 1j, 1 + 0j])),
    "argwhere": lambda t: t.argwhere(t.tensor([[0, 1], [2, 0]])),
    "column_stack": lambda t: t.column_stack([t.arange(2), t.ones(2, 2, dtype=t.int64)]),
    "tensor_split": lambda t: t.tensor_split(t.arange(7), 3),
    "tensor_split at": lambda t: t.arange(12).view(3, 4).tensor_split([1, 3, 9], dim=1),
    "atleast_1d": lambda t: t.atleast_1d(t.tensor(1), t.ones(2)),
    "atleast_2d": lambda t: t.atleast_2d(t.ones(2)),
    "atleast_3d": lambda t: t.atleast_3d([t.tensor(1), t.ones(2), t.ones(2, 3)]),
    "fill_diagonal_": lambda t: t.zeros(2, 3).fill_diagonal_(4),
    "negated": lambda t: -t.tensor([1.5, -0.0]),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_functions_are_torchs(name):
    torch = pytest.importorskip("torch", reason="torch is the oracle")
    ours, theirs = COMPOSED[name](mt), COMPOSED[name](torch)
    if not isinstance(theirs, tuple):
        ours, theirs = (ours,), (theirs,)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert str(mine.dtype).replace("mindtorch", "torch") == str(other.dtype)
        assert tuple(mine.shape) == tuple(other.shape)
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-6)


def test_precision_and_threads_are_kept():
    mt.set_float32_matmul_precision("high")
    assert mt.get_float32_matmul_precision() == "high"
    with pytest.warns(UserWarning, match="is not one of"):
        mt.set_float32_matmul_precision("low")
    assert mt.get_float32_matmul_precision() == "high"
    before = mt.get_num_threads()
    try:
        for wanted in (1, 2):
            mt.set_num_threads(wanted)
            assert mt.get_num_threads() == wanted
            assert {i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"} == {
                wanted
            }
    finally:
        mt.set_num_threads(before)


def test_negating_a_mask_names_the_remedy():
    with pytest.raises(RuntimeError, match=r"use the `~` or `logical_not\(\)` operator instead"):
        -mt.tensor([True])


def test_shapes_changed_in_place_are_seen_by_the_next_op():
    x = mt.arange(6.0).view(2, 3).clone()
    assert (x + 1).shape == (2, 3)
    assert x.unsqueeze_(0).add(1).shape == (1, 2, 3)
    assert x.squeeze_(0).add(1).shape == (2, 3)
    assert x.t_().add(1).tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    assert x.swapaxes_(0, 1).sum(1).tolist() == [3.0, 12.0]
    with pytest.raises(RuntimeError, match="a leaf Variable"):
        mt.ones(2, 3, requires_grad=True).transpose_(0, 1)
