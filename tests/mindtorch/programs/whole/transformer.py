import torch, sys
import torch.nn as nn

dev = sys.argv[1]
torch.manual_seed(26)
enc = nn.TransformerEncoder(
    nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=True),
    2,
    enable_nested_tensor=False,
).to(dev)
x = torch.randn(2, 5, 8).to(dev)
pad = torch.tensor([[False] * 5, [False] * 3 + [True] * 2], device=dev)
out = enc(
    x,
    mask=nn.Transformer.generate_square_subsequent_mask(5, device=dev),
    src_key_padding_mask=pad.float().masked_fill(pad, float("-inf")),
)
print(out.shape, out[0, :2])
out.sum().backward()
print(enc.layers[0].linear1.weight.grad.norm())
mha = nn.MultiheadAttention(8, 2, batch_first=True).to(dev)
o, w = mha(x, x, x, key_padding_mask=pad)
print(w[1], w.shape)
pos = torch.arange(5)[:, None] * torch.exp(torch.arange(0, 8, 2) * -0.5)
pe = torch.stack([pos.sin(), pos.cos()], -1).flatten(1)
print(pe[1], pe.shape)
