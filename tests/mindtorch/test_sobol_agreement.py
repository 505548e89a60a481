"""Sobol points, scrambled ones too, are torch's; so are tensors over files."""

import importlib

import numpy as np
import pytest

from tests.mindtorch.agreement import agree


def engine(lib, *args, **words):
    return importlib.import_module(f"{lib.__name__}.quasirandom").SobolEngine(*args, **words)


@pytest.mark.parametrize("scramble", [False, True])
@pytest.mark.parametrize("dimension", [1, 2, 7, 200])
def test_points_are_torchs(dimension, scramble):
    def run(lib):
        e = engine(lib, dimension, scramble=scramble, seed=11 if scramble else None)
        first = e.draw(3), e.draw(6, dtype=lib.float64)
        e.fast_forward(77)
        then = e.draw(2), e.num_generated, e.quasi, e.shift, e.sobolstate.sum(1), repr(e)
        out = lib.empty(0)
        again = e.reset().draw_base2(3), e.draw_base2(3, out=out) is out, out
        skipped = engine(lib, dimension).fast_forward(5).draw(1), engine(lib, dimension).draw(1)
        return first, then, again, skipped

    agree(run)


def test_every_dimension_of_the_table_is_torchs():
    agree(lambda lib: engine(lib, 21201).sobolstate.sum(1))


def test_a_scramble_without_a_seed_follows_the_default_generator():
    def run(lib):
        lib.manual_seed(3)
        return engine(lib, 4, scramble=True).draw(5), lib.rand(2)

    agree(run)


@pytest.mark.parametrize("what", ["none", "too many", "balance"])
def test_what_no_engine_can_do_is_refused_in_torchs_words(what):
    def run(lib):
        if what == "balance":
            e = engine(lib, 2)
            e.draw(3)
            return e.draw_base2(3)
        return engine(lib, 0 if what == "none" else 21202)

    agree(run)


CALLS = {
    "whole": lambda lib, path: lib.from_file(path, size=10),
    "part": lambda lib, path: lib.from_file(path, shared=False, size=3, dtype=lib.int32),
    "none": lambda lib, path: lib.from_file(path),
    "too long": lambda lib, path: lib.from_file(path, size=11),
    "negative": lambda lib, path: lib.from_file(path, size=-1),
    "longer": lambda lib, path: lib.from_file(path, True, 12),
    "gradient": lambda lib, path: lib.from_file(path, size=2, requires_grad=True),
    "no file": lambda lib, path: lib.from_file(path + "x", size=2),
    "folder": lambda lib, path: lib.from_file(path.rpartition("/")[0], True, 2),
    "storage": lambda lib, path: lib.UntypedStorage.from_file(path, False, 4000),
    "name": lambda lib, path: lib.UntypedStorage.from_file(path, True, 8).filename == path,
}


@pytest.mark.parametrize("name", CALLS)
def test_tensors_over_files_are_torchs(name, tmp_path):
    def run(lib):
        path = tmp_path / "numbers"
        np.arange(10, dtype=np.float32).tofile(path)
        return CALLS[name](lib, str(path)), path.stat().st_size

    agree(run)


@pytest.mark.parametrize("shared", [False, True])
def test_writes_reach_a_file_that_is_shared(shared, tmp_path):
    def run(lib):
        path = tmp_path / "numbers"
        np.arange(4, dtype=np.float32).tofile(path)
        lib.from_file(str(path), shared=shared, size=4)[1] = 7.0
        return np.fromfile(path, np.float32).tolist()

    agree(run)
