"""Checkpoints of shards: torch reads ours and we read torch's; refusals are torch's."""

import importlib
import io
import json
import pickle
import random
from itertools import pairwise
from pathlib import Path

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="torch is the oracle")
pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
SHARDS = Path(__file__).parent / "shards.py"
LIBRARIES = {"mindtorch": mindtorch, "torch": torch}


def dcp(library, name=""):
    return importlib.import_module(f"{library}.distributed.checkpoint{name}")


def state(library):
    t = LIBRARIES[library]
    whole = t.arange(12.0).view(3, 4)
    return {
        "model": {"weight": whole.clone(), "part": whole[:, 1:3], "half": t.ones(2).bfloat16(),
                  "scalar": t.tensor(5), "empty": t.ones(0, 3), "bool": t.tensor([True, False])},
        "optim": {0: {"step": t.tensor(2.0)}, "groups": [{"lr": 0.5, "params": [0, 1]}]},
        "list": [t.ones(2), 3, {"x": "y"}], "kept": [1, 2], "tuple": (t.ones(1), 4), "none": None,
        "step": 7,
    }  # fmt: skip


def plain(value):
    """A state without either library's tensors."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(plain, value)]
    if hasattr(value, "tolist"):
        return [str(value.dtype).rpartition(".")[2], tuple(value.shape), value.float().tolist()]
    return value


def cleared(value):
    """A state to load into: tensors of zeros, other objects None."""
    if isinstance(value, dict):
        return {k: cleared(v) for k, v in value.items()}
    if isinstance(value, list) and any(hasattr(v, "tolist") for v in value):
        return [cleared(v) for v in value]
    if hasattr(value, "tolist"):
        return value.new_zeros(value.shape)
    return value if isinstance(value, list) else None


@pytest.mark.parametrize("reads", LIBRARIES)
@pytest.mark.parametrize("writes", LIBRARIES)
@pytest.mark.parametrize("options", [{}, {"single_file_per_rank": False}, {"thread_count": 3}])
def test_either_library_reads_what_either_wrote(writes, reads, options, tmp_path):
    own = dcp(writes)
    own.save(state(writes), storage_writer=own.FileSystemWriter(tmp_path, **options))
    other = dcp(reads)
    told = cleared(state(reads))
    other.load(told, checkpoint_id=tmp_path)
    expected = plain(state(reads))
    # Keys of dictionaries are texts in a checkpoint; lists of dictionaries are paths.
    told["optim"].pop(0, None)
    expected["optim"] = {"groups": expected["optim"]["groups"]}
    assert plain(told) == expected


def metadata_text(library, path):
    """What `.metadata` holds, but for what each save has of its own, read by `library`."""
    told = dcp(library).FileSystemReader(path).read_metadata()
    told.storage_meta.save_id = told.storage_meta.load_id = None
    for info in told.storage_data.values():
        info.offset = info.length = 0
    return repr(told)


def test_the_metadata_is_that_of_torch(tmp_path):
    for library in LIBRARIES:
        dcp(library).save(state(library), checkpoint_id=tmp_path / "x", no_dist=True)
        text = metadata_text("torch", tmp_path / "x")
        assert metadata_text("mindtorch", tmp_path / "x") == text
        (tmp_path / "x").rename(tmp_path / library)
    assert b"mindtorch" not in (tmp_path / "mindtorch" / ".metadata").read_bytes()
    texts = {
        pickle.dumps(metadata_text("torch", tmp_path / library)).replace(library.encode(), b"")
        for library in LIBRARIES
    }
    assert len(texts) == 2  # the folders' names differ in length alone
    names = [metadata_text("torch", tmp_path / n).partition("storage_meta")[0] for n in LIBRARIES]
    assert names[0] == names[1]


def refused(library, path):
    """What is said of what cannot be loaded or saved."""
    t, own = LIBRARIES[library], dcp(library)
    told = []
    own.save({"a": t.ones(2, 3), "b": 3}, checkpoint_id=path / library, no_dist=True)
    for call in (
        lambda: own.load({"c": t.ones(1)}, checkpoint_id=path / library, no_dist=True),
        lambda: own.load({"a": t.ones(3)}, checkpoint_id=path / library, no_dist=True),
        lambda: own.load({"a": 3}, checkpoint_id=path / library, no_dist=True),
        lambda: own.load({"a": 3}, no_dist=True),
        lambda: own.save({"a": 3}, no_dist=True),
        lambda: own.save({"a.b": 1, "a": {"b": 2}}, checkpoint_id=path / "no", no_dist=True),
        lambda: own.save({"a": 1}, no_dist=True, storage_writer=own.FileSystemWriter(
            path / library, overwrite=False)),
        lambda: own.load({"a": t.ones(2, 3)}, checkpoint_id=path / "nowhere", no_dist=True),
    ):  # fmt: skip
        with pytest.raises(BaseException) as error:  # noqa: PT011 - what it is, is compared
            call()
        text = str(error.value).strip().splitlines()[-1]
        told.append((error.type.__name__, text.replace("mindtorch", "torch")))
    partial = {"a": t.zeros(2, 3), "c": t.ones(1)}
    planner = own.DefaultLoadPlanner(allow_partial_load=True)
    own.load(partial, checkpoint_id=path / library, no_dist=True, planner=planner)
    return [*told, plain(partial)]


def test_refusals_are_those_of_torch(tmp_path):
    assert refused("mindtorch", tmp_path) == refused("torch", tmp_path)


def planned(library, stored, local):
    """The boxes that are read for each chunk of a process."""
    md = dcp(library, ".metadata")
    helpers = dcp(library, ".planner_helpers")
    size = LIBRARIES[library].Size
    chunks = [[md.ChunkStorageMetadata(size(o), size(s)) for o, s in part]
              for part in (stored, local)]  # fmt: skip
    whole = md.TensorStorageMetadata(md.TensorProperties(), size((9, 7)), chunks[0])
    items = helpers.create_read_items_for_chunk_list("x", whole, chunks[1])
    return sorted(
        (i.dest_index.index, i.storage_index.index, tuple(i.dest_offsets),
         tuple(i.storage_offsets), tuple(i.lengths))
        for i in items
    )  # fmt: skip


def cut(draw, rows, columns):
    """Boxes that make a whole: each row of boxes is cut by itself."""

    def parts(n):
        marks = sorted({0, n, *draw.sample(range(n), 2)})
        return list(pairwise(marks))

    return [((r0, c0), (r1 - r0, c1 - c0)) for r0, r1 in parts(rows) for c0, c1 in parts(columns)]


@pytest.mark.parametrize("seed", range(5))
def test_boxes_that_are_read_are_those_of_torch(seed):
    draw = random.Random(seed)
    stored, local = cut(draw, 9, 7), cut(draw, 9, 7)
    assert planned("mindtorch", stored, local) == planned("torch", stored, local)


class Counter:
    def __init__(self, t):
        self.count, self.mean = 1, t.ones(2)

    def state_dict(self):
        return {"count": self.count, "mean": self.mean}

    def load_state_dict(self, state):
        self.count, self.mean = state["count"], state["mean"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_is_stateful_saves_and_loads_itself(library, tmp_path):
    t, own = LIBRARIES[library], dcp(library)
    counter = Counter(t)
    assert isinstance(counter, dcp(library, ".stateful").Stateful)
    own.save({"c": counter}, checkpoint_id=tmp_path, no_dist=True)
    counter.count, counter.mean = 5, t.zeros(2)
    own.load({"c": counter}, checkpoint_id=tmp_path, no_dist=True)
    assert (counter.count, counter.mean.tolist()) == (1, [1.0, 1.0])


def test_a_save_beside_training_writes_what_was_there(tmp_path):
    own, staging = dcp("mindtorch"), dcp("mindtorch", ".staging")
    tensor = mindtorch.ones(3)
    writing = own.async_save({"x": tensor, "n": [1]}, checkpoint_id=tmp_path / "a", no_dist=True)
    tensor.zero_()
    assert set(writing.result().state_dict_metadata) == {"x", "n"}
    stager = staging.DefaultStager()
    both = own.async_save(
        {"x": tensor}, checkpoint_id=tmp_path / "b", async_stager=stager, no_dist=True
    )
    both.staging_completion.result()
    tensor.fill_(7)
    both.upload_completion.result()
    for name, expected in (("a", 1.0), ("b", 0.0)):
        told = {"x": mindtorch.full((3,), 5.0)}
        own.load(told, checkpoint_id=tmp_path / name, no_dist=True)
        assert told["x"].tolist() == [expected] * 3
    failed = own.async_save({"x": 1})
    with pytest.raises(RuntimeError, match="checkpoint_id"):
        failed.result()


def test_checkpoints_and_files_of_torch_save_become_each_other(tmp_path):
    formats = dcp("mindtorch", ".format_utils")
    whole = {"m": {"w": mindtorch.arange(4.0)}, "step": 3}
    mindtorch.save(whole, tmp_path / "file.pt")
    formats.torch_save_to_dcp(tmp_path / "file.pt", tmp_path / "parts")
    formats.dcp_to_torch_save(tmp_path / "parts", tmp_path / "again.pt")
    assert plain(torch.load(tmp_path / "again.pt")) == plain(whole)
    told = {"m": {"w": mindtorch.zeros(4)}}
    dcp("mindtorch").load(
        told, storage_reader=formats.BroadcastingTorchSaveReader(tmp_path / "file.pt"),
        planner=formats.DynamicMetaLoadPlanner(), no_dist=True,
    )  # fmt: skip
    assert told["m"]["w"].tolist() == [0.0, 1.0, 2.0, 3.0]
    loader = dcp("mindtorch", ".state_dict_loader")
    some = loader._load_state_dict_from_keys("m", checkpoint_id=tmp_path / "parts")
    assert plain(some) == plain({"m": whole["m"]})


def test_archives_one_behind_the_other_are_each_whole():
    stream = io.BytesIO()
    ends = []
    for n in (3, 100):
        mindtorch.save(mindtorch.arange(n), stream)
        ends.append(stream.tell())
    second = stream.getvalue()[ends[0] :]
    assert torch.load(io.BytesIO(second)).tolist() == list(range(100))
    assert mindtorch.load(io.BytesIO(second)).tolist() == list(range(100))


def ranks(what, library, size, folder):
    """What each rank of `shards.py` tells."""
    from tests.mindtorch.distributed.test_distributed import run

    codes, outputs, errors = run(what, str(folder), size, SHARDS, LIBRARY=library)
    assert codes == [0] * size, errors
    return [json.loads(out.splitlines()[-1]) for out in outputs]


@pytest.mark.slow
def test_shards_are_read_by_another_number_of_ranks(tmp_path):
    written = ranks("write", "mindtorch", 2, tmp_path)
    assert written[0]["files"] == [".metadata", "__0_0.distcp", "__1_0.distcp"]
    told = ranks("read", "mindtorch", 3, tmp_path)
    for rank in told:
        for name in ("rows", "columns", "copy", "one"):
            assert rank["told"][name][0] == written[0]["state"][name][0]
        assert rank["told"]["model"]["0.weight"][0] == written[0]["state"]["model"]["0.weight"][0]
        assert rank["lr"] == 0.1
        for name, (whole, _) in rank["again"][0].items():
            assert whole == written[0]["state"]["model"][name][0]


@pytest.mark.slow
def test_shards_go_both_ways_between_ranks_of_torch_and_ours(tmp_path):
    """Half a minute: `pytest -m slow tests/mindtorch/distributed`."""
    wrote = {name: ranks("write", name, 3, tmp_path / name) for name in LIBRARIES}
    assert wrote["mindtorch"] == wrote["torch"]
    told = [
        ranks("read", reads, 2, tmp_path / writes) for reads in LIBRARIES for writes in LIBRARIES
    ]
    assert all(t == told[0] for t in told)
