"""Linear attention by the gated delta rule."""

from __future__ import annotations

from .....spec import *
from .....spec import group as group_, heads as heads_
from .._words import *

_RULE: Final = Rule("gradient", "Yang et al.: Gated Delta Networks, 2024; op-plugin document "
                    "npu_recurrent_gated_delta_rule", values="normal")  # fmt: skip
_SIZES: Final = sizes(B=heads_(2, 1, 3), T=seq(5, 1, 9, 70), K=heads_(2, 1, 3), G=group_(2, 1, 3),
                      N="K*G", D=head_dim(16, 8, 64), V=head_dim(8, 16, 64))  # fmt: skip
_TOKENS: Final[dict[str, Domain]] = {
    "query": tensor("T K D", "value"), "key": tensor("T K D", "value", -0.3, 0.3),
    "value": tensor("T N V", "bf16"),
}  # fmt: skip
_BETA: Final = tensor("T N", "value", 0.1, 1)
_LENGTHS: Final = parts("B", of="T", dtype="i32")
_SCALE: Final = number(0.25, "D**-0.5", 1.0)


def _accepted(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Of each sequence the token, from 1, whose state it goes on from."""
    lengths = draw["actualSeqLengths"].values()
    counts = [int(rng.integers(1, max(n, 1) + 1)) for n in lengths]
    return np.maximum(lengths, 1) if pattern == "all" else np.array(counts)


@spec("aclnnRecurrentGatedDeltaRule", _RULE, _SIZES, sizes(E=seq(3, 1), P="T + E"),
      both("T > 8", "V > D", "given(gk) and given(g)"), **_TOKENS, beta=optional(_BETA),
      stateRef=inout(tensor("P N V D", "value")), actualSeqLengths=_LENGTHS,
      ssmStateIndices=slots("T", into="P", dtype="i32"),
      g=optional(tensor("T N", "f32", -1, 0)), gk=optional(tensor("T N D", "f32", -1, 0)),
      numAcceptedTokens=optional(content(_accepted, "some all", "i32", shape="B",
                                         reads=("actualSeqLengths",))),
      scaleValue=_SCALE, out=out("value"))  # fmt: skip
def gated_delta(
    query: Array, key: Array, value: Array, beta: Array | None, stateRef: Array,
    actualSeqLengths: Array, ssmStateIndices: Array, g: Array | None, gk: Array | None,
    numAcceptedTokens: Array | None, scaleValue: float,
) -> tuple[Array, Array]:  # fmt: skip
    """S = a S + beta (v - a S k) k^T and o = scale S q; every token's state is kept in its slot.
    `gk` is a decay of its own for each channel of the keys."""
    beta = np.ones(value.shape[:2]) if beta is None else beta
    g = np.zeros(value.shape[:2]) if g is None else g
    group = value.shape[1] // key.shape[1]
    q, k = (np.repeat(x, group, 1) for x in (query * scaleValue, key))
    states, out, begin = stateRef.copy(), np.empty_like(value), 0
    for b, length in enumerate(actualSeqLengths):
        if not length:
            continue
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
    return states, out


@spec("aclnnChunkGatedDeltaRule", replace(
          _RULE, source="Yang, Kautz, Hatamizadeh: Gated Delta Networks, 2024, section 3.3; "
          "Yang et al.: Parallelizing Linear Transformers with the Delta Rule, 2024"),
      _SIZES, both("T > 64", "V > D"), **_TOKENS, beta=_BETA,
      initialState=tensor("B N V D", "value"), actualSeqLengths=_LENGTHS,
      gOptional=optional(tensor("T N", "f32", -1, -0.01)), scaleValue=_SCALE, out=out("value"),
      finalState=out("initialState"))  # fmt: skip
def chunked_delta(
    query: Array, key: Array, value: Array, beta: Array, initialState: Array,
    actualSeqLengths: Array, gOptional: Array | None, scaleValue: float,
) -> tuple[Array, Array]:  # fmt: skip
    """A sequence in one step: the corrections u of all tokens solve one triangular system."""
    out, states, begin = np.zeros_like(value), initialState.copy(), 0
    gOptional = np.zeros(value.shape[:2]) if gOptional is None else gOptional
    group = value.shape[1] // key.shape[1]
    for b, length in enumerate(actualSeqLengths):
        chunk = slice(begin, begin + length)
        begin += length
        for n in range(value.shape[1] if length else 0):
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
