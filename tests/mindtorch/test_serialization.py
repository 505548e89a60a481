"""Files of `save` are torch's: each library reads the other's; unknown globals are refused."""

import contextlib
import io
import os
import pickle
import random
import zipfile

import numpy as np
import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the other reader is torch 2.13")


def saved(library, value):
    buffer = io.BytesIO()
    library.save(value, buffer)
    buffer.seek(0)
    return buffer


def content(t):
    whole = t.arange(6.0).view(2, 3)
    return {
        "whole": whole,
        "part": whole[1],
        "transposed": whole.t(),
        "half": t.ones(2, dtype=t.bfloat16),
        "ints": t.tensor([1, 2], dtype=t.int8),
        "empty": t.zeros(0, 3),
        "leaf": t.ones(2, requires_grad=True),
        "dtype": t.float16,
        "size": whole.shape,
        "rest": [1, "x", None, 2.5],
    }


def plain(value):
    if hasattr(value, "storage_offset"):
        facts = (str(value.dtype), tuple(value.shape), tuple(value.stride()), value.requires_grad)
        return (value.tolist(), *facts)
    return str(value) if "dtype" in type(value).__name__ else value


@pytest.mark.parametrize(
    ("writer", "reader"),
    [(mindtorch, torch), (torch, mindtorch), (mindtorch, mindtorch)],
    ids=["to torch", "from torch", "itself"],
)
def test_what_one_writes_the_other_reads(writer, reader):
    expected = {k: plain(v) for k, v in content(writer).items()}
    got = {k: plain(v) for k, v in reader.load(saved(writer, content(writer))).items()}
    assert got == expected


def test_shared_storage_stays_shared():
    found = mindtorch.load(saved(mindtorch, content(mindtorch)))
    found["whole"][1, 0] = 99.0
    assert found["part"][0].item() == 99.0
    assert found["transposed"][0, 1].item() == 99.0


def test_state_dict_of_a_module_travels():
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    ours = mindtorch.nn.Sequential(mindtorch.nn.Linear(2, 3), mindtorch.nn.BatchNorm1d(3))
    ours.load_state_dict(mindtorch.load(saved(torch, theirs.state_dict())))
    assert ours[0].weight.tolist() == theirs[0].weight.tolist()
    theirs.load_state_dict(torch.load(saved(mindtorch, ours.state_dict())))


def test_path_is_written_and_read(tmp_path):
    mindtorch.save(mindtorch.ones(2), tmp_path / "t.pt")
    assert mindtorch.load(tmp_path / "t.pt").tolist() == [1.0, 1.0]


def test_the_zip_file_has_torch_s_entries(tmp_path):
    def entries(library, file):
        library.save({"a": library.ones(3), "b": library.ones(1000)}, file)
        with zipfile.ZipFile(file) as archive:
            data = {e.filename: archive.read(e) for e in archive.infolist()}
        last = next(reversed(data))
        return {**data, last: data[last].isdigit() and len(data[last])}

    for name in ("kept.tar.pt", "kept"):
        assert entries(mindtorch, tmp_path / name) == entries(torch, tmp_path / name)
    assert entries(mindtorch, io.BytesIO()) == entries(torch, io.BytesIO())


def _refusal(library, file):
    """The class and text of what `load` raises for a file, trusted and not."""
    outcomes = []
    for trusted in (False, True):
        file.seek(0)
        try:
            outcomes.append(type(library.load(file, weights_only=not trusted)).__name__)
        except Exception as error:
            outcomes.append((type(error), str(error)))
    return outcomes


def test_files_of_other_kinds_are_refused_as_by_torch():
    whole = saved(torch, torch.ones(100)).getvalue()
    heads = (b"", b"not a zip", b"PK\x03\x04broken", b'{"a":1}', b"\0" * 100)
    for raw in (*heads, whole[:300], whole[:-10], b"PK\x03\x04" + b"\0" * 400):
        file = io.BytesIO(raw)
        assert _refusal(mindtorch, file) == _refusal(torch, file), raw[:20]
        file.seek(len(raw))  # a buffer that was not wound back
        assert _refusal(mindtorch, file) == _refusal(torch, file), raw[:20]
        file.seek(0)
        assert mindtorch.serialization._is_zipfile(file) == torch.serialization._is_zipfile(file)


def test_other_globals_are_refused_by_name():
    for value in ({"f": print}, pickle.UnpicklingError("x"), torch.nn.Linear(1, 1)):
        assert _refusal(mindtorch, saved(torch, value)) == _refusal(torch, saved(torch, value))
    assert mindtorch.load(saved(torch, {"f": print}), weights_only=False)["f"] is print


def test_missing_and_broken_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no\.pt"):
        mindtorch.load(tmp_path / "no.pt")
    (tmp_path / "bad.pt").write_bytes(b"not a zip")
    with pytest.raises(pickle.UnpicklingError, match="Unsupported operand 110"):
        mindtorch.load(tmp_path / "bad.pt")


def test_map_location_meta_and_cpu():
    found = mindtorch.load(saved(mindtorch, {"t": mindtorch.ones(2)}), map_location="meta")
    assert found["t"].device.type == "meta"
    found = mindtorch.load(saved(mindtorch, {"t": mindtorch.ones(2)}), map_location="cpu")
    assert found["t"].tolist() == [1.0, 1.0]


def test_npu_tensors_are_saved_from_the_device():
    if not mindtorch.npu.is_available():
        pytest.skip("NPU not available")
    t = mindtorch.arange(4.0, device="npu")[1:]
    found = mindtorch.load(saved(mindtorch, t))
    assert found.tolist() == [1.0, 2.0, 3.0]
    assert pickle.loads(pickle.dumps(t)).device.type == "npu"


def archive(body, storages=(), byteorder="little", extra=()):
    """A file in memory: a pickle and its storages, as an attacker may write them."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("archive/data.pkl", body)
        out.writestr("archive/byteorder", byteorder)
        for key, data in storages:
            out.writestr(f"archive/data/{key}", data, zipfile.ZIP_DEFLATED)
        for name, data in extra:
            out.writestr(name, data)
    file.seek(0)
    return file


def tensor_pickle(count, size, stride, offset=0, kind="FloatStorage"):
    """The pickle of one tensor over storage 0, written opcode by opcode."""
    numbers = "".join(f"I{n}\n" for n in size), "".join(f"I{n}\n" for n in stride)
    return (
        "ctorch._utils\n_rebuild_tensor_v2\n("
        f"(Vstorage\nctorch\n{kind}\nV0\nVcpu\nI{count}\ntQ"
        f"I{offset}\n({numbers[0]}t({numbers[1]}tI00\nccollections\nOrderedDict\n)RtR."
    ).encode()


@pytest.mark.parametrize("target", ["torch\nfloat32", "torch\nSize", "torch\ndevice"])
def test_a_file_cannot_change_objects_that_are_not_its_own(target):
    before = mindtorch.float32.itemsize
    body = f"c{target}\n}}Vitemsize\nI1\nsb.".encode()
    with pytest.raises(pickle.UnpicklingError, match="Can only build Tensor"):
        mindtorch.load(archive(body))
    assert mindtorch.float32.itemsize == before


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [((5,), (1,), 0), ((2, 2), (4, 1), 0), ((1,), (1,), 4), ((-1,), (1,), 0), ((4,), (-1,), 3)],
)
def test_geometry_past_its_storage_is_refused(size, stride, offset):
    body = tensor_pickle(4, size, stride, offset)
    with pytest.raises(RuntimeError, match="load: "):
        mindtorch.load(archive(body, [("0", bytes(16))]))


def test_a_storage_that_unpacks_to_more_than_declared_is_refused_unread():
    body = tensor_pickle(4, (4,), (1,))
    with pytest.raises(RuntimeError, match="unpacks to 1048576 bytes, at most 16 fit"):
        mindtorch.load(archive(body, [("0", bytes(1 << 20))]))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_entry_that_stands_twice_is_refused():
    body = tensor_pickle(4, (4,), (1,))
    with pytest.raises(RuntimeError, match="stands twice"):
        mindtorch.load(archive(body, [("0", bytes(16)), ("0", bytes(16))]))


@pytest.mark.parametrize("dtype", ["float32", "int16", "complex64", "uint8"])
def test_big_endian_files_are_read(dtype):
    values = np.arange(4).astype(dtype)
    kinds = {"float32": "Float", "int16": "Short", "complex64": "ComplexFloat", "uint8": "Byte"}
    body = tensor_pickle(4, (4,), (1,), kind=kinds[dtype] + "Storage")
    stored = values.astype(values.dtype.newbyteorder(">")).tobytes()
    loaded = mindtorch.load(archive(body, [("0", stored)], byteorder="big"))
    assert loaded.tolist() == values.tolist()


def test_a_file_is_kept_when_writing_another_over_it_fails(tmp_path):
    path = tmp_path / "model.pt"
    mindtorch.save({"a": mindtorch.ones(3)}, path)
    with pytest.raises(AttributeError, match="Can't pickle local object"):
        mindtorch.save({"a": lambda: None}, path)
    assert mindtorch.load(path)["a"].tolist() == [1.0, 1.0, 1.0]
    assert [p.name for p in tmp_path.iterdir()] == ["model.pt"]


def _damaged(body, draw):
    """The bytes with one to four of them changed, left out or added."""
    body = bytearray(body)
    for _ in range(draw.choice([1, 1, 2, 4])):
        at = draw.randrange(len(body))
        kind = draw.choice(["change", "change", "leave out", "add"])
        if kind == "change":
            body[at] = draw.randrange(256)
        elif kind == "add":
            body[at:at] = bytes(draw.randrange(256) for _ in range(3))
        else:
            del body[at : at + draw.randrange(1, 5)]
    return bytes(body)


def test_a_damaged_pickle_loads_or_is_refused_by_name():
    whole = io.BytesIO()
    mindtorch.save({"a": mindtorch.ones(3, 4), "b": [mindtorch.zeros(2), {"k": 1.5}]}, whole)
    with zipfile.ZipFile(whole) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    draw, refused = random.Random(0), 0
    for _ in range(400):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name, data in parts.items():
                archive.writestr(name, _damaged(data, draw) if name.endswith("pkl") else data)
        file.seek(0)
        try:
            mindtorch.load(file)
        except (RuntimeError, pickle.UnpicklingError):
            refused += 1
    assert refused > 200


def test_a_damaged_file_is_refused_as_torch_s():
    whole = io.BytesIO()
    mindtorch.save({"a": mindtorch.ones(3), "b": [1.5, "x"]}, whole)
    rng = np.random.default_rng(0)
    for _ in range(150):
        body = bytearray(whole.getvalue())
        for at in rng.integers(0, len(body), 3):
            body[at] = rng.integers(256)
        with contextlib.suppress(RuntimeError, EOFError, OSError, pickle.UnpicklingError):
            mindtorch.load(io.BytesIO(bytes(body[: rng.integers(len(body) // 2, len(body) + 1)])))


def test_an_interrupt_as_a_file_takes_its_place_is_raised(tmp_path, monkeypatch):
    replace = os.replace

    def interrupted(*paths):
        replace(*paths)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        mindtorch.save(mindtorch.ones(2), tmp_path / "x.pt")
    assert [path.name for path in tmp_path.iterdir()] == ["x.pt"]
    assert mindtorch.load(tmp_path / "x.pt").tolist() == [1.0, 1.0]


def test_what_a_handler_of_signals_raises_is_no_damage_of_the_file(monkeypatch):
    """A program that gives up on a slow load by an alarm is told so."""
    file = io.BytesIO()
    mindtorch.save({"x": mindtorch.ones(2)}, file)
    file.seek(0)

    def alarm(*_):
        raise TimeoutError("alarm")

    monkeypatch.setattr("mindtorch.serialization._reading._Unpickler.persistent_load", alarm)
    with pytest.raises(TimeoutError, match="alarm"):
        mindtorch.load(file)


def test_an_interrupt_within_an_entry_is_raised(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile._ZipWriteFile, "close", interrupted)
    for target in (tmp_path / "x.pt", io.BytesIO()):
        with pytest.raises(KeyboardInterrupt):
            mindtorch.save(mindtorch.ones(2), target)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("other", ["torch", "ours"])
def test_jagged_tensors_are_read_from_torchs_files_and_by_torch(other, strict):
    libraries = {"torch": torch, "ours": mindtorch}
    writer, reader = libraries[other], libraries["ours" if other == "torch" else "torch"]
    parts = [writer.ones(2, 3), writer.zeros(1, 3)]
    jagged = writer.nested.nested_tensor(parts, layout=writer.jagged)
    for library in (reader, writer):
        got = library.load(saved(writer, [jagged, jagged.values()]), weights_only=strict)
        assert got[0].offsets().tolist() == [0, 2, 3]
        assert (got[0] * 2).values().tolist() == [[2.0] * 3] * 2 + [[0.0] * 3]
        assert got[0].values().data_ptr() == got[1].data_ptr()
