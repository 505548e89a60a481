"""What torch gives for the rows of rnn."""

from __future__ import annotations

import numpy as np
import torch

from ._arguments import t
from ._functions import autograd


def gru(a):
    net = torch.nn.GRU(6, 8, a["numLayers"], bias=a["hasBias"], batch_first=a["batchFirst"],
                       bidirectional=a["bidirection"]).double()  # fmt: skip
    with torch.no_grad():
        for own, p in zip(net.parameters(), t(a["params"]), strict=True):
            own.copy_(p)
        return net(t(a["input"]), t(a["hx"]))


def recurrence(word, gates, a, ways):
    """torch's own net with the sample's weights, backward from what flows into its results."""
    net = word(6, 8, a["numLayers"], bidirectional=ways == 2).double()
    with torch.no_grad():
        for own, p in zip(net.parameters(), t(a["params"]), strict=True):
            own.copy_(p)
    x = t(a["input"]).requires_grad_()
    begin = [v.requires_grad_() for v in (t(a["hx"]) if gates == 4 else [t(a["hx"])])]
    y, last = net(x, tuple(begin) if gates == 4 else begin[0])
    outs = (y, *last) if gates == 4 else (y, last)
    flows = [t(a[n]) for n in ("dy", "dh", "dc")[: len(outs)]]
    return torch.autograd.grad(outs, (x, *begin, *net.parameters()), flows)


def cell(gates, cx):
    i, f, g, o = gates.chunk(4, -1)
    new = f.sigmoid() * cx + i.sigmoid() * g.tanh()
    return o.sigmoid() * new.tanh(), new


def one_cell(a):
    gates = t(a["inputGates"]) + t(a["hiddenGates"])
    for name in ("inputBiasOptional", "hiddenBiasOptional"):
        gates = gates if a[name] is None else gates + t(a[name])
    i, f, g, o = gates.chunk(4, -1)
    return *cell(gates, t(a["cx"])), torch.cat(
        [i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()], -1
    )


def cell_gradients(a):
    i, f, g, o = t(a["storage"]).chunk(4, -1)
    gates = torch.cat([torch.logit(i), torch.logit(f), torch.atanh(g), torch.logit(o)], -1)
    flows = [a["gradHyOptional"], np.zeros((3, 16)) if a["gradCOptional"] is None
             else a["gradCOptional"]]  # fmt: skip
    dgates, dcx = autograd(cell, gates.numpy(), a["cx"], flow=flows)
    return dgates, dcx, dgates.sum(0)


def lstm(a):
    net = torch.nn.LSTM(6, 8, a["numLayers"], bias=a["hasBias"], batch_first=a["batchFirst"],
                        bidirectional=a["bidirectional"]).double().eval()  # fmt: skip
    with torch.no_grad():
        for own, p in zip(net.parameters(), t(a["params"]), strict=True):
            own.copy_(p)
        y, (h, c) = net(t(a["input"]), tuple(t(a["hx"])))
    return y, h, c


def both_ways(a):
    net = torch.nn.LSTM(6, 8, bias=a["isbias"], batch_first=a["batchFirst"],
                        bidirectional=a["bidirection"]).double().eval()  # fmt: skip
    kinds = ("wIh", "wHh", "bIh", "bHh") if a["isbias"] else ("wIh", "wHh")
    ways = ("", "Reverse") if a["bidirection"] else ("",)
    names = [f"{n}{way}Optional" for way in ways for n in kinds]
    names[:2] = "wIh", "wHh"
    with torch.no_grad():
        for own, name in zip(net.parameters(), names, strict=True):
            own.copy_(t(a[name]))
        y, (h, c) = net(t(a["x"]), (t(a["initH"]), t(a["initC"])))
    return y, h, c


ORACLES = {
    "aclnnGRU": gru,
    "aclnnGRUBackward": lambda a: recurrence(torch.nn.GRU, 3, a, 1 + a["bidirection"]),
    "aclnnLstmBackward": lambda a: recurrence(torch.nn.LSTM, 4, a, 1 + a["bidirectional"]),
    "aclnnThnnFusedLstmCell": one_cell,
    "aclnnThnnFusedLstmCellBackward": cell_gradients,
    "aclnnLSTM": lstm,
    "aclnnBidirectionLSTM": both_ways,
}
