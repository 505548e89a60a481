"""Linear attention by the gated delta rule."""

from __future__ import annotations

import numpy as np

from .....judge.precision import Array
from ...spec import bf16, const, spec, t, take


@spec("aclnnRecurrentGatedDeltaRule", "out:value stateRef:stateRef",
      tolerance="gradient", dtypes=("bfloat16",), source="Yang et al.: Gated Delta Networks, 2024; "
      "op-plugin document npu_recurrent_gated_delta_rule", samples=[
          take(query=bf16(5, 2, 16), key=bf16(5, 2, 16, low=-0.3, high=0.3),
               value=bf16(5, 4, 16), beta=bf16(5, 4, low=0.1, high=1),
               stateRef=bf16(6, 4, 16, 16), actualSeqLengths=const([2, 3], "int32"),
               ssmStateIndices=const([4, 1, 5, 0, 2], "int32"), g=t(5, 4, low=-1, high=0),
               gk=gk, numAcceptedTokens=accepted, scaleValue=0.25)
          for gk, accepted in ((None, None), (None, const([2, 3], "int32")),
                               (t(5, 4, 16, low=-1, high=0), None))],
      )  # fmt: skip
def gated_delta(
    query: Array, key: Array, value: Array, beta: Array, stateRef: Array, actualSeqLengths: Array,
    ssmStateIndices: Array, g: Array, gk: Array | None, numAcceptedTokens: Array | None,
    scaleValue: float,
) -> tuple[Array, Array]:  # fmt: skip
    """S = a S + beta (v - a S k) k^T and o = scale S q; every token's state is kept in its slot.
    `gk` is a decay of its own for each channel of the keys."""
    group = value.shape[1] // key.shape[1]
    q, k = (np.repeat(x, group, 1) for x in (query * scaleValue, key))
    states, out, begin = stateRef.copy(), np.empty_like(value), 0
    for b, length in enumerate(actualSeqLengths):
        last = 0 if numAcceptedTokens is None else int(numAcceptedTokens[b]) - 1
        state = states[ssmStateIndices[begin + last]]
        for i in range(begin, begin + length):
            state = state * np.exp(g[i])[:, None, None]
            state = state if gk is None else state * np.exp(gk[i])[:, None, :]
            gap = beta[i][:, None] * (value[i] - np.einsum("nvk,nk->nv", state, k[i]))
            state = state + gap[:, :, None] * k[i][:, None, :]
            states[ssmStateIndices[i]] = state
            out[i] = np.einsum("nvk,nk->nv", state, q[i])
        begin += length
    return out, states


@spec("aclnnChunkGatedDeltaRule", "out:value finalState:initialState",
      tolerance="gradient", dtypes=("bfloat16",), source="Yang, Kautz, Hatamizadeh: Gated Delta "
      "Networks, 2024, section 3.3; Yang et al.: Parallelizing Linear Transformers with the Delta "
      "Rule, 2024", samples=[
          take(query=bf16(5, 2, 16, low=-0.4, high=0.4), key=bf16(5, 2, 16, low=-0.3, high=0.3),
               value=bf16(5, heads, 8), beta=bf16(5, heads, low=0.1, high=1),
               initialState=bf16(2, heads, 8, 16), actualSeqLengths=const([2, 3], "int32"),
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
        chunk = slice(begin, begin + length)
        begin += length
        for n in range(value.shape[1]):
            q, k, v = query[chunk, n // group], key[chunk, n // group], value[chunk, n]
            run = np.cumsum(gOptional[chunk, n])
            decay = np.tril(np.exp(run[:, None] - run[None]))  # from a token to a later one
            system = np.eye(length) + np.tril(beta[chunk, n][:, None] * decay * (k @ k.T), -1)
            start = np.exp(run)[:, None] * (k @ initialState[b, n].T)
            u = np.linalg.solve(system, beta[chunk, n][:, None] * (v - start))
            from_state = np.exp(run)[:, None] * (q @ initialState[b, n].T)
            out[chunk, n] = scaleValue * (from_state + (decay * (q @ k.T)) @ u)
            to_end = np.exp(run[-1] - run)[:, None]
            states[b, n] = np.exp(run[-1]) * initialState[b, n] + (to_end * u).T @ k
    return out, states
