"""What torch.save writes in its rarer forms is read here, and the other way round."""

import collections
import io
import mmap
import pickle
import zipfile

import numpy as np
import pytest

import mindtorch
from tests.mindtorch.agreement import agree

torch = pytest.importorskip("torch", reason="torch 2.13 writes the files")


def written(value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return file


def ours(value, **options):
    file = io.BytesIO()
    mindtorch.save(value, file, **options)
    file.seek(0)
    return file


def shared(lib):
    base = lib.arange(12.0).reshape(3, 4)
    return {"base": base, "view": base[1:, ::2], "half": lib.ones(3).to(lib.bfloat16),
            "flags": lib.tensor([True, False]), "list": [base.t(), "word", 2.5, None]}  # fmt: skip


@pytest.mark.parametrize("strict", [True, False])
def test_the_format_before_zip_files_is_read(strict):
    file = written(shared(torch), _use_new_zipfile_serialization=False)
    values = mindtorch.load(file, weights_only=strict)
    assert values["view"].tolist() == [[4, 6], [8, 10]]
    assert values["half"].dtype is mindtorch.bfloat16
    assert values["list"][0].tolist() == values["base"].t().tolist()
    values["base"].zero_()
    assert values["view"].tolist() == [[0, 0], [0, 0]]
    assert values["flags"].tolist() == [True, False]


@pytest.mark.parametrize("reader", [torch, mindtorch])
def test_the_format_before_zip_files_is_written(reader):
    file = ours(shared(mindtorch), _use_new_zipfile_serialization=False)
    theirs = written(shared(torch), _use_new_zipfile_serialization=False)
    assert file.getvalue()[:30] == theirs.getvalue()[:30]
    values = reader.load(file)
    assert values["list"][0].tolist() == values["base"].t().tolist()
    assert values["list"][1:] == ["word", 2.5, None]
    assert values["half"].dtype is reader.bfloat16
    values["base"].zero_()
    assert values["view"].tolist() == [[0, 0], [0, 0]]
    module = ours(mindtorch.nn.Linear(2, 1).state_dict(), _use_new_zipfile_serialization=False)
    assert reader.load(module)["weight"].shape == (1, 2)


def test_one_storage_of_two_dtypes_does_not_fit_the_format_before():
    def save(lib):
        x = lib.ones(4)
        lib.save([x, x.view(lib.int32)], io.BytesIO(), _use_new_zipfile_serialization=False)

    agree(save)


def test_a_damaged_old_file_is_refused_by_name():
    whole = written(shared(torch), _use_new_zipfile_serialization=False).getvalue()
    for end in range(0, len(whole), 7):
        refusals = (RuntimeError, pickle.UnpicklingError) if end else EOFError
        with pytest.raises(refusals, match="^(load: |Weights only load failed)" if end else "^$"):
            mindtorch.load(io.BytesIO(whole[:end]))


def test_an_old_file_calls_nothing_while_it_is_read_strictly():
    class Call:
        def __reduce__(self):
            return (pytest.fail, ("called",))

    file = written({"x": torch.ones(2), "c": Call()}, _use_new_zipfile_serialization=False)
    with pytest.raises(pickle.UnpicklingError, match="fail"):
        mindtorch.load(file)


PLAIN = {
    "bytes": b"a\xff", "set": {1, 2}, "complex": 1 + 2j, "bytearray": bytearray(b"xy"),
    "counter": collections.Counter("aab"), "ordered": collections.OrderedDict(a=1),
    "tuple": (1, [2.5, {"k": None}]), "large": 1 << 70,
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_plain_values_travel_both_ways(name):
    value = PLAIN[name]
    assert mindtorch.load(written(value)) == value
    assert torch.load(ours(value)) == value


def test_parameters_keep_their_attributes():
    for lib, other, write in ((torch, mindtorch, written), (mindtorch, torch, ours)):
        parameter = lib.nn.Parameter(lib.ones(2), requires_grad=False)
        parameter.note = "frozen"
        tensor = lib.ones(2)
        tensor.note = 5
        a, b = other.load(write([parameter, tensor]))
        assert type(a) is other.nn.Parameter
        assert (a.note, a.requires_grad, b.note) == ("frozen", False, 5)


def test_attributes_that_would_replace_methods_are_refused():
    x = torch.ones(2)
    x.__dict__["shape"] = 5
    with pytest.raises(RuntimeError, match="no attributes of a tensor"):
        mindtorch.load(written(x))


def test_meta_tensors_travel():
    a = mindtorch.load(written(torch.empty(3, 4, device="meta").t()))
    assert (tuple(a.shape), a.stride(), a.device.type) == ((4, 3), (1, 4), "meta")
    b = torch.load(ours(mindtorch.empty(3, 4, device="meta").t()))
    assert (tuple(b.shape), b.stride(), b.device.type) == ((4, 3), (1, 4), "meta")


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_storages_are_values_of_their_own():
    x = mindtorch.arange(4, dtype=mindtorch.int16)
    typed, whole = (
        torch.load(ours({"x": x, "s": x.storage()})),
        torch.load(ours(x.untyped_storage())),
    )
    assert (typed["s"].tolist(), whole.tolist()) == ([0, 1, 2, 3], [0, 0, 1, 0, 2, 0, 3, 0])
    t = torch.arange(4, dtype=torch.int16)
    assert mindtorch.load(written(t.storage())).tolist() == [0, 1, 2, 3]
    assert mindtorch.load(written(t.untyped_storage())).tolist() == [0, 0, 1, 0, 2, 0, 3, 0]


WHERE = {
    "name": ("cpu", "cpu"), "device": (mindtorch.device("meta"), "meta"),
    "dict": ({"cpu": "meta", "npu:0": "cpu"}, "meta"), "other dict": ({"npu:0": "meta"}, "cpu"),
    "kept": (lambda storage, location: storage, "cpu"),
    "default": (lambda storage, location: None, "cpu"),
}  # fmt: skip


@pytest.mark.parametrize("name", WHERE)
def test_map_location_says_where(name):
    where, device = WHERE[name]
    x = mindtorch.load(written(torch.ones(3)), map_location=where)
    assert x.device.type == device


def test_a_function_sees_each_storage_with_its_location():
    seen = []
    base = torch.ones(4)
    mindtorch.load(
        written([base, base[:2], torch.zeros(2)]),
        map_location=lambda storage, location: seen.append((storage.nbytes(), location)),
    )
    assert seen == [(16, "cpu"), (8, "cpu")]


def test_tensors_of_an_npu_come_back_to_it_and_share():
    base = mindtorch.arange(6.0).npu()
    file = ours([base, base[2:]])
    again, view = mindtorch.load(file)
    assert str(again.device) == "npu:0"
    again.zero_()
    assert view.tolist() == [0, 0, 0, 0]
    file.seek(0)
    assert mindtorch.load(file, map_location={"npu:0": "cpu"})[1].tolist() == [2, 3, 4, 5]


def test_a_device_that_is_not_here_is_named():
    body, old = io.BytesIO(), zipfile.ZipFile(ours(mindtorch.ones(2)))
    with zipfile.ZipFile(body, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data.replace(b"\x03\x00\x00\x00cpu", b"\x06\x00\x00\x00cuda:0"))
    with pytest.raises(RuntimeError, match=r"CUDA device.*map_location"):
        mindtorch.load(io.BytesIO(body.getvalue()))
    assert mindtorch.load(io.BytesIO(body.getvalue()), map_location="cpu").tolist() == [1, 1]
    assert mindtorch.load(io.BytesIO(body.getvalue()), map_location=lambda s, _: s).tolist() == [
        1,
        1,
    ]


def test_a_mapped_file_is_read_in_place(tmp_path):
    for write in (torch.save, mindtorch.save):
        path = tmp_path / f"{write.__module__}.pt"
        write({"x": mindtorch.arange(9.0) if write is mindtorch.save else torch.arange(9.0)}, path)
        before = path.read_bytes()
        x = mindtorch.load(path, mmap=True)["x"]
        assert isinstance(x.untyped_storage()._storage.memory.base, (np.memmap, mmap.mmap))
        x.add_(1)
        assert (x.tolist()[0], path.read_bytes()) == (1.0, before)
    with pytest.raises(ValueError, match="file path"):
        mindtorch.load(ours(mindtorch.ones(2)), mmap=True)


def test_storages_begin_at_multiples_of_64():
    x = [mindtorch.ones(n) for n in (1, 3, 17)]
    file = ours(x).getvalue()
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        for entry in archive.infolist():
            if "/data/" in entry.filename:
                sizes = file[entry.header_offset + 26 : entry.header_offset + 30]
                extra = int.from_bytes(sizes[2:], "little")
                assert (entry.header_offset + 30 + len(entry.filename) + extra) % 64 == 0


class Marked:
    def __init__(self, value):
        self.value = value


def test_safe_globals_are_allowed_inside_a_context():
    options = mindtorch.serialization
    before = options.get_safe_globals()  # those of DTensor, where a test imported it
    file = ours(Marked(3)).getvalue()
    assert options.get_unsafe_globals_in_checkpoint(io.BytesIO(file)) == [f"{__name__}.Marked"]
    with options.safe_globals([Marked]):
        assert mindtorch.load(io.BytesIO(file)).value == 3
        assert {*options.get_safe_globals()} - {*before} == {Marked}
    with pytest.raises(pickle.UnpicklingError, match="Marked"):
        mindtorch.load(io.BytesIO(file))
    options.add_safe_globals([(Marked, f"{__name__}.Marked")])
    assert mindtorch.load(io.BytesIO(file)).value == 3
    options.clear_safe_globals()
    options.add_safe_globals(before)
    with pytest.raises(pickle.UnpicklingError, match="Marked"):
        mindtorch.load(io.BytesIO(file))


def test_the_environment_forces_strictness(monkeypatch):
    file = ours(Marked(3)).getvalue()
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    assert mindtorch.load(io.BytesIO(file)).value == 3
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of"):
        mindtorch.load(io.BytesIO(file))
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(pickle.UnpicklingError, match="Marked"):
        mindtorch.load(io.BytesIO(file), weights_only=False)


def test_data_can_be_left_out():
    with mindtorch.serialization.skip_data():
        file = ours(mindtorch.ones(3))
    assert mindtorch.load(file).tolist() == [0, 0, 0]
    with mindtorch.serialization.skip_data():
        assert mindtorch.load(ours(mindtorch.zeros(3))).shape == (3,)


def test_a_module_that_torch_saved_whole_is_ours():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.LayerNorm(4))
    again = mindtorch.load(written(model), weights_only=False)
    assert type(again) is mindtorch.nn.Sequential
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    expected = model(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(again(mindtorch.from_numpy(x)).detach().numpy(), expected, atol=1e-5)


def test_optimizers_travel():
    for lib, other, write in ((torch, mindtorch, written), (mindtorch, torch, ours)):
        model = lib.nn.Linear(3, 2)
        optimizer = lib.optim.Adam(model.parameters(), lr=0.1)
        model(lib.ones(1, 3)).sum().backward()
        optimizer.step()
        state = other.load(write(optimizer.state_dict()))
        fresh = other.optim.Adam(other.nn.Linear(3, 2).parameters())
        fresh.load_state_dict(state)
        assert fresh.param_groups[0]["lr"] == 0.1
        assert fresh.state_dict()["state"][0]["exp_avg"].tolist() == (
            optimizer.state_dict()["state"][0]["exp_avg"].tolist()
        )


def test_other_pickle_modules_need_trust():
    file = ours({"x": mindtorch.ones(2)}).getvalue()
    assert mindtorch.load(io.BytesIO(file), pickle_module=pickle)["x"].tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        mindtorch.load(io.BytesIO(file), pickle_module=pickle, weights_only=True)


def test_what_is_no_file_is_named():
    with pytest.raises(AttributeError, match="'write' attribute"):
        mindtorch.save(1, object())
    with pytest.raises(AttributeError, match="seekable"):
        mindtorch.load(object())


def test_byte_order_can_be_assumed():
    options = mindtorch.serialization
    file = ours(mindtorch.tensor([1], dtype=mindtorch.int16), _disable_byteorder_record=True)
    options.set_default_load_endianness(options.LoadEndianness.BIG)
    try:
        assert mindtorch.load(file).tolist() == [256]
    finally:
        options.set_default_load_endianness(None)
    file.seek(0)
    assert mindtorch.load(file).tolist() == [1]
