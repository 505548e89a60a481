"""What torch's own words give for exchanged products, factors, inner formats and turned rows."""

from __future__ import annotations

import torch
from test_references import SPECS, F, t


def experts(a, scales=()):
    """Rows of each expert times its matrix; the shared expert's product."""
    w = t(a["gmmWeight"]).double()
    w = w.mT if a["transGmmWeight"] else w
    parts = t(a["gmmX"]).double().split(list(a["sendCounts"]))
    y = torch.cat([x @ m for x, m in zip(parts, w, strict=True)])
    shared = None
    if a["mmXOptional"] is not None:
        v = t(a["mmWeightOptional"]).double()
        shared = F.linear(t(a["mmXOptional"]).double(), v if a["transMmWeight"] else v.mT)
    if scales:
        y = y * t(a[scales[0]]) * t(a[scales[1]])
        if shared is not None and a[scales[2]] is not None:
            shared = shared * t(a[scales[2]]) * t(a[scales[3]])
    return y, shared


_SCALES = ("gmmXScale", "gmmWeightScale", "mmXScaleOptional", "mmWeightScaleOptional")


def there(a, scales=()):
    return *experts(a, scales), t(a["gmmX"]) if a["permuteOutFlag"] else None


def weight(a, name="x2", flag="transposeX2"):
    w = t(a[name]).double()
    return w.mT if a[flag] else w


def plus(y, *more):
    for one in more:
        y = y if one is None else y + t(one)
    return y


def rounded_rows(a):
    x = t(a["x1"])
    x = x if a["x1ScaleOptional"] is None else x * t(a["x1ScaleOptional"])
    scale = x.abs().amax(-1, keepdim=True) / 127
    y = plus((x / scale).round() @ weight(a), a["biasOptional"])
    return y * scale * t(a["x2Scale"]), t(a["x1"])


def columns(a):
    y = plus(t(a["x1"]).double() @ weight(a), a["biasOptional"])
    return y * torch.outer(t(a["x1Scale"]), t(a["x2Scale"]))


ACTIVATIONS = (lambda x: x, lambda x: F.gelu(x, approximate="tanh"), F.silu, F.relu,
               lambda x: x * torch.sigmoid(1.702 * x))  # fmt: skip


def gathered(a):
    plain = plus(torch.bmm(t(a["x"]), t(a["weight"])), a["biasOptional"])
    return ACTIVATIONS[a["actType"]](plain), t(a["x"]), plain


def members(a):
    bias = t(a["bias"]) or [None] * len(a["x"])
    return [F.linear(x, w.T, b) for x, w, b in zip(t(a["x"]), t(a["weight"]), bias, strict=True)]


def quantised_sum(a):
    y = plus(t(a["x1"]).double() @ t(a["x2"]).double(), a["biasOptional"]) * t(a["x2Scale"])
    if a["x1ScaleOptional"] is not None:
        y = (y.T * t(a["x1ScaleOptional"])).T
    return plus(y, a["x3Optional"])


def stft(a):
    window = None if a["windowOptional"] is None else t(a["windowOptional"])
    y = torch.stft(t(a["self"]), a["nFft"], a["hopLength"], a["winLength"], window, False,
                   normalized=a["normalized"], onesided=a["onesided"],
                   return_complex=True)  # fmt: skip
    return torch.view_as_real(y)


def svd(a):
    """Signs of pairs, and what completes a basis, are free: taken from the row's own results."""
    mine = [t(v) for v in SPECS["aclnnSvd"].reference(**a)]
    theirs = torch.linalg.svd(t(a["input"]), full_matrices=a["fullMatrices"])
    k = theirs.S.shape[-1]
    sign = (mine[1][..., :k] * theirs.U[..., :k]).sum(-2, keepdim=True).sign()
    known = theirs.U[..., :k] * sign, theirs.Vh.mT[..., :k] * sign
    whole = [torch.cat([v, m[..., k:]], -1) for v, m in zip(known, mine[1:], strict=True)]
    for basis in mine[1:]:
        torch.testing.assert_close(basis.mT @ basis, torch.eye(basis.shape[-1]).double().expand(
            *basis.shape[:-2], -1, -1))  # fmt: skip
    return theirs.S, *whole


def jagged(a):
    starts, ends = t(a["inputOffset"])[:-1], t(a["inputOffset"])[1:]
    pieces = [torch.arange(b, e) for b, e in zip(starts, ends, strict=True)]
    return torch.cat([pieces[k] for k in a["permute"]])


def packed(a):
    words = t(a["weight"]).long().remainder(16).unflatten(-1, (-1, 8))
    total = sum(words[..., k] << 4 * k for k in range(8))
    return torch.where(total >= 1 << 31, total - (1 << 32), total)


def drafts(a):
    """The golden of op-plugin's test, in torch's words."""
    requests, each = a["specToken"].shape[0], 1 + a["specToken"].shape[1]
    at = t(a["inputPositions"]) + t(a["acceptedNum"]).repeat_interleave(each) + 1
    samples = t(a["sampledTokenIds"])
    ended = torch.cat([samples, torch.full((requests, 1), -1)], 1).argmin(1) - 1
    tokens = torch.cat([samples.gather(1, ended[:, None]), t(a["specToken"])], 1).flatten()
    owner = torch.arange(requests).repeat_interleave(each)
    block = t(a["blockTables"])[owner, at // a["blockSize"]]
    return tokens, at, at + 1, block * a["blockSize"] + at % a["blockSize"]


def tiles(a):
    x = t(a["srcTensor"])
    wide = 32 if x.dtype == torch.int8 else 16
    x = F.pad(x, (0, -x.shape[-1] % wide, 0, -x.shape[-2] % 16))
    return x.unflatten(-1, (-1, wide)).unflatten(-3, (-1, 16)).movedim(-2, -4)


def each_group(x, w, sizes, scale, token):
    parts = [p.double() @ m.double() * s for p, m, s in
             zip(x.split(sizes.tolist()), w, scale, strict=True)]  # fmt: skip
    return torch.cat(parts) * token[:, None]


def sizes_of(groups, kind):
    groups = t(groups)
    return groups if kind else groups.diff(prepend=torch.zeros(1, dtype=groups.dtype))


def grouped_weight(a):
    sizes = sizes_of(a["groupListOptional"], a["groupListType"])
    scale, token = t(a["scaleOptional"])[0], t(a["perTokenScaleOptional"])[0]
    y = each_group(t(a["x"])[0], t(a["weight"])[0], sizes, scale, token)
    if a["biasOptional"] is None:
        return y
    return y + (t(a["biasOptional"])[0] * scale).repeat_interleave(sizes, 0) * token[:, None]


def finalize(first, second, suffix=""):
    def run(a):
        sizes = sizes_of(a[f"groupList{suffix}"], a["groupListType"])
        scale = t(a[f"scale{suffix}"]).to(torch.int32).view(torch.float32).double()
        token = t(a["pertokenScaleOptional"])
        y = each_group(t(a[first]), t(a[second]), sizes, scale.flatten(1), token)
        if a[f"bias{suffix}"] is not None:
            y = y + t(a[f"bias{suffix}"]).repeat_interleave(sizes, 0) * token[:, None]
        if a[f"logit{suffix}"] is not None:
            y = y * t(a[f"logit{suffix}"])[:, None]
        index = t(a[f"rowIndex{suffix}"])
        out = torch.zeros(int(index.max()) + 1, y.shape[1], dtype=y.dtype).index_add(0, index, y)
        shared, at = a[f"sharedInput{suffix}"], a["sharedInputOffset"]
        if shared is not None:
            out[at : at + len(shared)] += a["sharedInputWeight"] * t(shared)
        return out

    return run


def turned_product(a):
    y = torch.einsum("mbk,bkn->mbn", t(a["x1"]), t(a["x2"]))
    return y * t(a["x1Scale"]).view(-1, 1, 1) * t(a["x2Scale"])


def added_product(a):
    y = torch.mm(t(a["x1"]).T, t(a["x2"])) * t(a["x2Scale"])
    one = a["x1ScaleOptional"]
    return t(a["yRef"]) + (y if one is None else y * t(one))


def flat(a):
    between = torch.matmul(t(a["x"]), t(a["kroneckerP2"])).half().double()
    y = torch.matmul(t(a["kroneckerP1"]), between).half().double()
    scale = y.flatten(1).abs().amax(1) / 7 / a["clipRatio"]
    return y / scale.view(-1, 1, 1), scale


def rotated(a):
    r = t(a["rotation"])
    y = t(a["x"]) @ torch.block_diag(*[r] * (a["x"].shape[-1] // len(r)))
    scale = y.abs().amax(-1) / 127
    return y / scale[:, None], scale


def peaks(a):
    sizes = sizes_of(a["groupList"], False).tolist()
    parts, scale = t(a["x"]).split(sizes), t(a["scale"])
    return (torch.cat([p / s for p, s in zip(parts, scale, strict=True)]),
            torch.stack([p.abs().max() for p in parts]))  # fmt: skip


def scatter_steps(a):
    out = t(a["selfRef"]).double()
    rows = torch.arange(a["updates"].shape[1])
    for b, row in enumerate(a["indices"]):
        out[b].index_copy_(0, rows + int(row), t(a["updates"])[b] / t(a["quantScales"])[0, 0])
    return out


EXCHANGED = {
    "aclnnAlltoAllvGroupedMatMul": there,
    "aclnnGroupedMatMulAlltoAllv": experts,
    "aclnnAlltoAllvQuantGroupedMatMul": lambda a: there(a, _SCALES),
    "aclnnQuantGroupedMatMulAlltoAllv": lambda a: experts(a, _SCALES),
    "aclnnAlltoAllQuantMatmul": rounded_rows,
    "aclnnQuantMatmulAlltoAll": columns,
    "aclnnQuantAllReduce": lambda a: (
        t(a["x"]).unflatten(-1, (-1, 32)) * t(a["scales"]).flatten(1)[..., None]).flatten(1),
    "aclnnAlltoAllAllGatherBatchMatMul": gathered,
    "aclnnBatchMatMulReduceScatterAlltoAll": lambda a: plus(
        torch.bmm(t(a["x"]), t(a["weight"])), a["biasOptional"]),
    "aclnnGroupedMatMulAllReduce": members,
    "aclnnQuantMatmulAllReduceV4": quantised_sum,
    "aclnnQr": lambda a: torch.linalg.qr(t(a["self"]), "reduced" if a["some"] else "complete"),
    "aclnnLinalgQr": lambda a: torch.linalg.qr(t(a["self"]), ("reduced", "complete")[a["mode"]]),
    "aclnnSvd": svd,
    "aclRfft1D": lambda a: torch.view_as_real(torch.fft.rfft(
        t(a["self"]), a["n"], a["dim"], ("backward", "forward", "ortho")[a["norm"] - 1])),
    "aclStft": stft,
    "aclnnResize": lambda a: F.interpolate(
        t(a["self"]), [int(n * s) for n, s in zip(a["self"].shape[2:], a["scales"][2:],
                                                  strict=True)], mode=a["mode"]),
    "aclnnExpandIntoJaggedPermute": jagged,
    "aclnnConvertWeightToINT4Pack": packed,
    "aclnnAdvanceStepV2": drafts,
    "aclnnNpuFormatCast": tiles,
    "aclnnGroupedMatmulWeightNz": grouped_weight,
    "aclnnGroupedMatmulFinalizeRouting": finalize("x", "w", "Optional"),
    "aclnnGroupedMatmulFinalizeRoutingV2": finalize("x1", "x2", "Optional"),
    "aclnnGroupedMatmulFinalizeRoutingWeightNz": finalize("x1", "x2"),
    "aclnnTransposeQuantBatchMatMul": turned_product,
    "aclnnQuantBatchMatmulInplaceAdd": added_product,
    "aclnnFlatQuant": flat,
    "aclnnRotateQuant": rotated,
    "aclnnQuantMax": lambda a: (t(a["x"]) / t(a["scale"]), t(a["x"]).abs().max()[None]),
    "aclnnGroupedQuantMax": peaks,
    "aclnnInplaceQuantScatterV2": scatter_steps,
}  # fmt: skip
