import torch, sys
import torch.nn as nn, torch.nn.functional as F

dev = sys.argv[1]
torch.manual_seed(11)


class Block(nn.Module):
    def __init__(s, i, o):
        super().__init__()
        s.net = nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1),
            nn.GroupNorm(2, o),
            nn.SiLU(),
            nn.Conv2d(o, o, 3, padding=1),
        )
        s.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(s, x):
        return s.net(x) + s.skip(x)


class UNet(nn.Module):
    def __init__(s):
        super().__init__()
        s.d1, s.d2, s.u1 = Block(1, 4), Block(4, 8), Block(12, 4)
        s.up = nn.ConvTranspose2d(8, 8, 2, 2)
        s.out = nn.Conv2d(4, 1, 1)

    def forward(s, x):
        a = s.d1(x)
        b = s.d2(F.max_pool2d(a, 2))
        return s.out(s.u1(torch.cat([s.up(b), a], 1)))


m = UNet().to(dev)
x = torch.randn(2, 1, 8, 8).to(dev)
out = m(x)
loss = F.mse_loss(out, x)
loss.backward()
print(m)
print(out.shape, loss)
print(out[0, 0, :2])
for n, p in list(m.named_parameters())[:3]:
    print(n, p.grad.norm())
y = F.interpolate(x, size=(5, 5), mode="bilinear", align_corners=False)
print(y[0, 0, 0])
z = m.to(memory_format=torch.channels_last)(x.to(memory_format=torch.channels_last))
print(z.shape)
