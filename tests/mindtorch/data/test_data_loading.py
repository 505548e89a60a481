"""Datasets, samplers and loaders give torch's batches, here and in worker processes."""

import collections
import random
from typing import Any

import numpy as np
import pytest

import mindtorch
import mindtorch.utils.data

torch: Any = pytest.importorskip("torch", reason="torch is the oracle of these tests")
Point = collections.namedtuple("Point", "x y")


def plain(value: Any) -> Any:
    """A batch as plain Python values, so that both libraries' can be compared."""
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        return (str(value.dtype).split(".")[-1], value.tolist())
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return (type(value).__name__, *[plain(item) for item in value])
    if isinstance(value, list | tuple):
        return [type(value).__name__, *[plain(item) for item in value]]
    return value


class Squares:
    def __init__(self, library: Any, size: int) -> None:
        self.library = library
        self.size = size

    def __getitem__(self, index: int) -> Any:
        if index >= self.size:
            raise IndexError(index)
        return self.library.tensor([float(index), float(index) ** 2]), index

    def __len__(self) -> int:
        return self.size


class Broken(Squares):
    def __getitem__(self, index: int) -> Any:
        if index == 3:
            raise KeyError("three is broken")
        return super().__getitem__(index)


class Count(mindtorch.utils.data.IterableDataset):  # type: ignore[type-arg]
    def __init__(self, size: int) -> None:
        self.size = size

    def __iter__(self) -> Any:
        info = mindtorch.utils.data.get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(start, self.size, step))


SAMPLES: list[Any] = [
    lambda t: [t.tensor([1, 2]), t.tensor([3, 4])],
    lambda t: [np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)],
    lambda t: [1.5, 2.5],
    lambda t: [1, 2],
    lambda t: [True, False],
    lambda t: ["a", "b"],
    lambda t: [np.float32(1.5), np.float32(2)],
    lambda t: [{"x": 1, "y": t.ones(2)}, {"x": 2, "y": t.zeros(2)}],
    lambda t: [(1, 2.0), (3, 4.0)],
    lambda t: [[1, 2], [3, 4]],
    lambda t: [Point(1, 2.0), Point(3, 4.0)],
]


@pytest.mark.parametrize("i", range(len(SAMPLES)))
def test_batches_are_made_as_torch_makes_them(i: int) -> None:
    expected = torch.utils.data.default_collate(SAMPLES[i](torch))
    found = mindtorch.utils.data.default_collate(SAMPLES[i](mindtorch))
    assert plain(found) == plain(expected)


UNBATCHED: list[Any] = [np.ones(2, np.float32), {"x": np.float64(1.0)}, (1, "a"), Point(1, 2), [1]]


@pytest.mark.parametrize("value", UNBATCHED, ids=repr)
def test_a_sample_without_a_batch_is_converted_as_torch_does(value: Any) -> None:
    expected = torch.utils.data.default_convert(value)
    assert plain(mindtorch.utils.data.default_convert(value)) == plain(expected)


LOADERS: list[dict[str, Any]] = [
    {},
    {"batch_size": 4},
    {"batch_size": 4, "drop_last": True},
    {"batch_size": None},
    {"batch_size": 3, "shuffle": True},
    {"batch_size": 3, "collate_fn": len},
    {"batch_sampler": [[1, 2], [0], [3, 4, 5]]},
    {"sampler": [5, 3, 1], "batch_size": 2},
]


@pytest.mark.parametrize("kwargs", LOADERS, ids=str)
def test_loader_gives_torchs_batches(kwargs: dict[str, Any]) -> None:
    seen = []
    for library in (torch, mindtorch):
        library.manual_seed(11)
        loader = library.utils.data.DataLoader(Squares(library, 10), **kwargs)
        seen.append(([plain(batch) for batch in loader], len(loader)))
    assert seen[1] == seen[0]


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_give_the_batches_in_order(workers: int) -> None:
    dataset = Squares(mindtorch, 11)
    here = mindtorch.utils.data.DataLoader(dataset, batch_size=2)
    there = mindtorch.utils.data.DataLoader(dataset, batch_size=2, num_workers=workers, timeout=60)
    assert [plain(b) for b in there] == [plain(b) for b in here]


def test_persistent_workers_serve_every_epoch() -> None:
    dataset = Squares(mindtorch, 6)
    loader = mindtorch.utils.data.DataLoader(
        dataset, batch_size=2, num_workers=1, persistent_workers=True, timeout=60
    )
    next(iter(loader))  # left early: its late answers must not enter the next epoch
    first = [plain(b) for b in loader]
    pids = [p.pid for p in loader._workers.processes]
    assert [plain(b) for b in loader] == first
    assert [p.pid for p in loader._workers.processes] == pids
    assert len(first) == 3
    loader._workers.close()


def test_an_iterable_dataset_is_shared_among_workers() -> None:
    loader = mindtorch.utils.data.DataLoader(Count(7), batch_size=2, num_workers=2, timeout=60)
    assert sorted(i for batch in loader for i in batch.tolist()) == list(range(7))


def test_an_iterable_dataset_ends_with_a_short_batch() -> None:
    loader = mindtorch.utils.data.DataLoader(Count(5), batch_size=2)
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4]]
    dropped = mindtorch.utils.data.DataLoader(Count(5), batch_size=2, drop_last=True)
    assert [batch.tolist() for batch in dropped] == [[0, 1], [2, 3]]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_samples_error_reaches_the_caller(workers: int) -> None:
    loader = mindtorch.utils.data.DataLoader(
        Broken(mindtorch, 6), batch_size=2, num_workers=workers, timeout=60 if workers else 0
    )
    with pytest.raises(KeyError, match="three is broken"):
        list(loader)


class Drawn(Squares):
    def __getitem__(self, index: int) -> Any:
        own = self.library.rand(()).item(), self.library.initial_seed()
        return *own, np.random.randint(1000), random.randint(0, 999)


@pytest.mark.parametrize("seeds", [False, True], ids=["own seeds", "worker_init_fn"])
def test_workers_draw_torchs_numbers_in_every_epoch(seeds: bool) -> None:
    def epochs(t: Any, persistent: bool) -> Any:
        g = t.Generator().manual_seed(77)
        loader = t.utils.data.DataLoader(
            Drawn(t, 3), num_workers=2, generator=g, persistent_workers=persistent, timeout=60,
            worker_init_fn=(lambda worker: np.random.seed(worker + 5)) if seeds else None,
        )  # fmt: skip
        batches = [[plain(b) for b in loader] for _ in range(2)]
        return batches, t.rand(1, generator=g).item()

    for persistent in (False, True):
        assert epochs(mindtorch, persistent) == epochs(torch, persistent)


def test_tensor_datasets_split_join_and_subset() -> None:
    data = mindtorch.utils.data
    x, y = mindtorch.arange(10), mindtorch.arange(10) * 2
    both = data.TensorDataset(x, y)
    assert [int(v) for v in both[3]] == [3, 6]
    assert len(both + both) == 20
    assert int((both + both)[13][0]) == 3
    assert int((both + both)[-1][0]) == 9
    picked = data.Subset(both, [4, 2])
    assert [int(picked[i][0]) for i in range(2)] == [4, 2]
    stacked = data.StackDataset(a=both, b=both)
    assert set(stacked[0]) == {"a", "b"}
    with pytest.raises(AssertionError, match="Size mismatch"):
        data.TensorDataset(x, y[:3])


@pytest.mark.parametrize("lengths", [[3, 7], [0.5, 0.3, 0.2], [0.33, 0.67]])
def test_random_split_is_torchs(lengths: list[Any]) -> None:
    parts = []
    for library in (torch, mindtorch):
        generator = library.Generator().manual_seed(5)
        split = library.utils.data.random_split(range(10), lengths, generator=generator)
        parts.append([list(part.indices) for part in split])
    assert parts[1] == parts[0]


SAMPLERS: list[Any] = [
    lambda d, g: d.SequentialSampler(range(7)),
    lambda d, g: d.RandomSampler(range(7), generator=g),
    lambda d, g: d.RandomSampler(range(7), num_samples=17, generator=g),
    lambda d, g: d.RandomSampler(range(7), replacement=True, num_samples=40, generator=g),
    lambda d, g: d.SubsetRandomSampler([3, 5, 9], generator=g),
    lambda d, g: d.WeightedRandomSampler([0.1, 0.5, 0.0, 0.4], 9, generator=g),
    lambda d, g: d.BatchSampler(d.SequentialSampler(range(7)), 3, False),
    lambda d, g: d.BatchSampler(d.SequentialSampler(range(7)), 3, True),
    lambda d, g: d.distributed.DistributedSampler(range(7), 3, 1, seed=2),
    lambda d, g: d.distributed.DistributedSampler(range(7), 3, 2, shuffle=False, drop_last=True),
]


@pytest.mark.parametrize("i", range(len(SAMPLERS)))
def test_sampler_draws_torchs_indices(i: int) -> None:
    drawn = []
    for library in (torch, mindtorch):
        sampler = SAMPLERS[i](library.utils.data, library.Generator().manual_seed(3))
        drawn.append((list(sampler), len(sampler)))
    assert drawn[1] == drawn[0]


REFUSED: list[Any] = [
    lambda d: d.DataLoader(range(3), shuffle=True, sampler=[1]),
    lambda d: d.DataLoader(range(3), batch_size=2, batch_sampler=[[1]]),
    lambda d: d.DataLoader(range(3), batch_size=None, drop_last=True),
    lambda d: d.DataLoader(range(3), num_workers=-1),
    lambda d: d.DataLoader(range(3), timeout=-1),
    lambda d: d.DataLoader(range(3), prefetch_factor=2),
    lambda d: d.DataLoader(range(3), persistent_workers=True),
    lambda d: d.DataLoader(range(3), batch_size=0),
    lambda d: d.RandomSampler(range(3), replacement=3),
    lambda d: d.RandomSampler(range(3), num_samples=-1),
    lambda d: d.WeightedRandomSampler([1.0], 0),
    lambda d: d.random_split(range(3), [1, 1]),
    lambda d: d.default_collate([object()]),
    lambda d: d.default_collate([[1], [1, 2]]),
    lambda d: d.ConcatDataset([]),
    lambda d: d.Dataset()[0],
    lambda d: setattr(d.DataLoader([1]), "multiprocessing_context", "fork"),
]


@pytest.mark.parametrize("i", range(len(REFUSED)))
def test_refusal_has_torchs_type_and_text(i: int) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011 - torch decides the class
        REFUSED[i](torch.utils.data)
    with pytest.raises(type(expected.value)) as found:
        REFUSED[i](mindtorch.utils.data)
    assert str(found.value) == str(expected.value)


def test_loaders_that_give_more_than_they_reported_warn() -> None:
    def run(library: Any) -> Any:
        class Numbers(library.utils.data.IterableDataset):
            def __iter__(self) -> Any:
                return iter(range(4))

            def __len__(self) -> int:
                return 3

            def __repr__(self) -> str:
                return "Numbers"

        loader = library.utils.data.DataLoader(Numbers())
        with pytest.warns(UserWarning, match="samples have been fetched") as warnings:
            batches = (len(loader), *loader)
        return [str(w.message) for w in warnings], str(batches), type(iter(loader)).__name__

    assert run(mindtorch) == run(torch)
