"""What torch gives for the rows of rnn."""

import numpy as np
import torch

from ._arguments import t


def packed(x, sizes):
    """Sequences of which as many as `sizes` says have not ended at a step."""
    if sizes is None:
        return x
    lengths = [int((np.asarray(sizes) > n).sum()) for n in range(x.shape[1])]
    return torch.nn.utils.rnn.pack_padded_sequence(x, lengths)


def padded(y, steps):
    if isinstance(y, torch.Tensor):
        return y
    return torch.nn.utils.rnn.pad_packed_sequence(y, total_length=steps)[0]


def states(values):
    return None if values is None else tuple(t(values))


def net_of(word, a, both):
    """torch's net of as many layers as there are weights."""
    layers = len(a["params"]) // (1 + both) // (4 if a["hasBias"] else 2)
    return word(a["input"].shape[-1], a["params"][1].shape[-1], layers, bias=a["hasBias"],
                batch_first=a["batchFirst"], bidirectional=both).double()  # fmt: skip


def gru(a):
    net = net_of(torch.nn.GRU, a, a["bidirection"])
    with torch.no_grad():
        for own, p in zip(net.parameters(), t(a["params"]), strict=True):
            own.copy_(p)
        return net(t(a["input"]), None if a["hx"] is None else t(a["hx"]))


def recurrence(word, gates, a, ways):
    """torch's own net with the sample's weights, backward from what flows into its results."""
    net = net_of(word, a, ways == 2)
    with torch.no_grad():
        for own, p in zip(net.parameters(), t(a["params"]), strict=True):
            own.copy_(p)
    x = t(a["input"]).requires_grad_()
    begin = [v.requires_grad_() for v in (t(a["hx"]) if gates == 4 else [t(a["hx"])])]
    y, last = net(packed(x, a.get("batchSizesOptional")), tuple(begin) if gates == 4 else begin[0])
    y = padded(y, x.shape[0])
    outs = (y, *last) if gates == 4 else (y, last)
    flows = [t(a[n]) for n in ("dy", "dh", "dc")[: len(outs)]]
    return torch.autograd.grad(outs, (x, *begin, *net.parameters()), flows)


def lstm(a):
    net = net_of(torch.nn.LSTM, a, a["bidirectional"])
    with torch.no_grad():
        for own, p in zip(net.parameters(), t(a["params"]), strict=True):
            own.copy_(p)
        x = t(a["input"])
        y, (h, c) = net(packed(x, a["batchSizes"]), states(a["hx"]))
    return padded(y, x.shape[0]), h, c


def both_ways(a):
    net = torch.nn.LSTM(a["x"].shape[-1], a["wHh"].shape[-1], bias=a["isbias"],
                        batch_first=a["batchFirst"], bidirectional=a["bidirection"],
                        ).double().eval()  # fmt: skip
    kinds = ("wIh", "wHh", "bIh", "bHh") if a["isbias"] else ("wIh", "wHh")
    ways = ("", "Reverse") if a["bidirection"] else ("",)
    names = [f"{n}{way}Optional" for way in ways for n in kinds]
    names[:2] = "wIh", "wHh"
    with torch.no_grad():
        for own, name in zip(net.parameters(), names, strict=True):
            own.copy_(t(a[name]))
        x, sizes = t(a["x"]), a["batchSizeOptional"] if a["packed"] else None
        y, (h, c) = net(packed(x, sizes), (t(a["initH"]), t(a["initC"])))
    return padded(y, x.shape[0]), h, c


ORACLES = {
    "aclnnGRU": gru,
    "aclnnGRUBackward": lambda a: recurrence(torch.nn.GRU, 3, a, 1 + a["bidirection"]),
    "aclnnLstmBackward": lambda a: recurrence(torch.nn.LSTM, 4, a, 1 + a["bidirectional"]),
    "aclnnLSTM": lstm,
    "aclnnBidirectionLSTM": both_ways,
}
