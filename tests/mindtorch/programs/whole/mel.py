import torch, sys, math

dev = sys.argv[1]
t = torch.arange(800) / 8000
wav = (torch.sin(2 * math.pi * 440 * t) + 0.5 * torch.sin(2 * math.pi * 880 * t)).to(dev)
win = torch.hann_window(128, device=dev)
S = torch.stft(wav, 128, 64, 128, win, center=True, return_complex=True)
P = S.abs() ** 2
hz = torch.linspace(0, 4000, 65)
mel = 2595 * torch.log10(1 + hz / 700)
pts = torch.linspace(0, mel[-1].item(), 12)
fb = torch.zeros(65, 10)
for i in range(10):
    up, down = (
        (mel - pts[i]) / (pts[i + 1] - pts[i]),
        (pts[i + 2] - mel) / (pts[i + 2] - pts[i + 1]),
    )
    fb[:, i] = torch.minimum(up, down).clamp(min=0)
M = (fb.t().to(dev) @ P).clamp_min(1e-10).log10()
print(S.shape, S.dtype, S.stride())
print(M.shape)
print(M[:, 3])
back = torch.istft(S, 128, 64, 128, win, center=True, length=800)
print(torch.allclose(back, wav, atol=1e-5), P.argmax(0))
print(torch.fft.rfftfreq(8), torch.fft.fftshift(torch.arange(5)))
