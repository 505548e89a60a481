"""Gated recurrences over whole sequences: GRU, and the delta rule solved for a chunk at once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import given, spec, t, take

_KEPT: Final = ("rOut", "zOut", "nOut", "hnOut", "hOut")


def _weights(layers: int, ways: int, biased: bool) -> list[Arg]:
    """[3H, I], [3H, H] and two biases, if any, of every cell, for 6 inputs and 8 states."""
    biases = ((24,), (24,)) if biased else ()
    return [t(*shape, low=-0.4, high=0.4) for layer in range(layers) for _ in range(ways)
            for shape in ((24, 6 if layer == 0 else 8 * ways), (24, 8), *biases)]  # fmt: skip


@spec("aclnnGRU", "output:input hy:input " + " ".join(f"{n}:input" for n in _KEPT),
      family="recurrent", tolerance="gradient", dtypes=("float32",),
      source="torch 2.13, document of GRU; Cho et al., 2014", samples=[
          take(input=t(*((2, 5) if first else (5, 2)), 6),
               params=_weights(layers, 1 + both, biased), hx=t(layers * (1 + both), 2, 8),
               batchSizes=None, hasBias=biased, numLayers=layers, dropout=0.0, train=True,
               bidirection=both, batchFirst=first)
          for layers, both, biased, first in ((1, False, True, False), (1, True, True, False),
                                              (2, True, True, False), (2, True, False, False),
                                              (1, True, True, True))])  # fmt: skip
def gru(
    input: Array, params: list[Array], hx: Array, hasBias: bool, numLayers: int, bidirection: bool,
    batchFirst: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """Rows of a weight are reset, update and new gate; h' = n + z (h - n). Training keeps what the
    gradient needs of every cell: the gates, the state's part of the new gate, and the states."""
    ways = 1 + bidirection
    cells = iter(zip(*[iter(params)] * (4 if hasBias else 2), strict=True))
    input = input.swapaxes(0, 1) if batchFirst else input
    last: list[Array] = []
    kept: list[list[Array]] = [[] for _ in _KEPT]
    for _ in range(numLayers):
        read = []
        for way in range(ways):
            (w, u, *biases), h = next(cells), hx[len(last)]
            b, c = biases or (0, 0)
            trace: list[Any] = [None] * len(input)
            for step in reversed(range(len(input))) if way else range(len(input)):
                own, old = (
                    (input[step] @ w.T + b).reshape(-1, 3, 8),
                    (h @ u.T + c).reshape(-1, 3, 8),
                )
                r, z = (0.5 + 0.5 * np.tanh((own[:, g] + old[:, g]) / 2) for g in (0, 1))
                n = np.tanh(own[:, 2] + r * old[:, 2])
                h = n + z * (h - n)
                trace[step] = (r, z, n, old[:, 2], h)
            last.append(h)
            for into, values in zip(kept, zip(*trace, strict=True), strict=True):
                into.append(np.stack(values))
            read.append(kept[-1][-1])
        input = np.concatenate(read, -1)
    return input.swapaxes(0, 1) if batchFirst else input, np.stack(last), *kept


def _b(*shape: int, **more: Any) -> Arg:
    return t(*shape, dtype="bfloat16", **more)


@spec("aclnnChunkGatedDeltaRule", "out:value finalState:initialState", family="attention",
      tolerance="gradient", dtypes=("bfloat16",), source="Yang, Kautz, Hatamizadeh: Gated Delta "
      "Networks, 2024, section 3.3; Yang et al.: Parallelizing Linear Transformers with the Delta "
      "Rule, 2024", samples=[
          take(query=_b(5, 2, 16, low=-0.4, high=0.4), key=_b(5, 2, 16, low=-0.3, high=0.3),
               value=_b(5, heads, 8), beta=_b(5, heads, low=0.1, high=1),
               initialState=_b(2, heads, 8, 16), actualSeqLengths=given([2, 3], "int32"),
               gOptional=t(5, heads, low=-1, high=-0.01), scaleValue=0.5) for heads in (2, 4)],
      )  # fmt: skip
def chunked_delta(
    query: Array, key: Array, value: Array, beta: Array, initialState: Array,
    actualSeqLengths: Array, gOptional: Array, scaleValue: float,
) -> tuple[Array, Array]:  # fmt: skip
    """A sequence in one step: the corrections u of all tokens solve one triangular system."""
    out, states, begin = np.zeros_like(value), np.zeros_like(initialState), 0
    group = value.shape[1] // key.shape[1]
    for b, length in enumerate(actualSeqLengths):
        own = slice(begin, begin + length)
        begin += length
        for n in range(value.shape[1]):
            q, k, v = query[own, n // group], key[own, n // group], value[own, n]
            run = np.cumsum(gOptional[own, n])
            decay = np.tril(np.exp(run[:, None] - run[None]))  # from a token to a later one
            system = np.eye(length) + np.tril(beta[own, n][:, None] * decay * (k @ k.T), -1)
            start = np.exp(run)[:, None] * (k @ initialState[b, n].T)
            u = np.linalg.solve(system, beta[own, n][:, None] * (v - start))
            from_state = np.exp(run)[:, None] * (q @ initialState[b, n].T)
            out[own, n] = scaleValue * (from_state + (decay * (q @ k.T)) @ u)
            to_end = np.exp(run[-1] - run)[:, None]
            states[b, n] = np.exp(run[-1]) * initialState[b, n] + (to_end * u).T @ k
    return out, states
