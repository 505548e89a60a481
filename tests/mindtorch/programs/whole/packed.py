import torch, sys
import torch.nn as nn
from torch.nn.utils.rnn import (
    pack_padded_sequence,
    pad_packed_sequence,
    pad_sequence,
    pack_sequence,
    unpad_sequence,
)

dev = sys.argv[1]
torch.manual_seed(21)
seqs = [torch.randn(n, 3) for n in (4, 2, 3)]
pad = pad_sequence(seqs, batch_first=True).to(dev)
lens = torch.tensor([4, 2, 3])
pk = pack_padded_sequence(pad, lens, batch_first=True, enforce_sorted=False)
print(pk.data.shape, pk.batch_sizes, pk.sorted_indices, pk.unsorted_indices)
lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True).to(dev)
o, (h, c) = lstm(pk)
o, l = pad_packed_sequence(o, batch_first=True)
print(o.shape, l, h.shape)
print(o[1])
print(h[-1, 0])
print(lstm)
gru = nn.GRU(3, 2).to(dev)
print(gru(pack_sequence([s.to(dev) for s in seqs], enforce_sorted=False))[1])
print([u.shape for u in unpad_sequence(pad, lens, batch_first=True)])
o.sum().backward()
print(lstm.weight_hh_l1.grad.norm())
