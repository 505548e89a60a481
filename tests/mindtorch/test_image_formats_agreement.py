"""What is computed from images has torch's strides, whatever the strides of the images are."""

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")


def image(t, form, device="cpu"):
    x = t.arange(240, dtype=t.float32, device=device).reshape(2, 4, 5, 6)
    if form == "contiguous":
        return x
    if form == "permuted":
        return x.permute(0, 3, 1, 2)
    if form == "transposed":
        return x.transpose(2, 3)
    x = x[:, :1] if form == "lone channel" else x
    x = x.contiguous(memory_format=t.channels_last)
    return x[..., :4] if form == "sliced" else x


CALLS = {
    "bilinear": lambda t, x: t.nn.functional.interpolate(x, (8, 8), mode="bilinear"),
    "nearest": lambda t, x: t.nn.functional.interpolate(x, (8, 8)),
    "nearest-exact": lambda t, x: t.nn.functional.interpolate(x, (8, 8), mode="nearest-exact"),
    "bicubic": lambda t, x: t.nn.functional.interpolate(x, (8, 8), mode="bicubic"),
    "roll one dim": lambda t, x: x.roll(1, 2),
    "roll all": lambda t, x: x.roll(3),
    "adaptive_avg_pool2d": lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda t, x: t.nn.functional.adaptive_max_pool2d(x, 2),
    "avg_pool2d": lambda t, x: t.nn.functional.avg_pool2d(x, 2),
    "adaptive_avg_pool2d to one": lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, 1),
    "channel_shuffle": lambda t, x: t.nn.functional.channel_shuffle(x, x.size(1)),
    "max_unpool2d": lambda t, x: t.nn.functional.max_unpool2d(
        x,
        t.arange(x.numel(), device=x.device).reshape(x.shape)
        % (x.numel() // x.size(0) // x.size(1)),
        2,
    ),
    "pad": lambda t, x: t.nn.functional.pad(x, (1, 1)),
    "reflect": lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    "replicate": lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1), mode="replicate"),
    "circular": lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1), mode="circular"),
    "pixel_shuffle": lambda t, x: t.nn.functional.pixel_shuffle(x, 2 if x.size(1) == 4 else 1),
    "pixel_unshuffle": lambda t, x: t.nn.functional.pixel_unshuffle(x[..., :4, :4], 2),
    **{f"stack {d}": lambda t, x, d=d: t.stack([x, x], d) for d in range(5)},
    "stack of two formats": lambda t, x: t.stack([x, x.contiguous()]),
    "by other dims": lambda t, x: t.nn.functional.interpolate(x, (7, 9), mode="bilinear"),
    "group_norm": lambda t, x: t.nn.functional.group_norm(x, 1),
    "double group_norm": lambda t, x: t.nn.functional.group_norm(x.double(), 1) ** 2,
    "double layer_norm": lambda t, x: t.nn.functional.layer_norm(x.double(), x.shape[2:]) ** 2,
    "i0": lambda t, x: (x / 240).i0(),
    "sort": lambda t, x: x.double().sort(1)[0],
    "batch_norm": lambda t, x: t.nn.functional.batch_norm(x, None, None, training=True) ** 2,
}
# Whose gradients have the usual order here.
NO_GRADIENT = {"adaptive_max_pool2d", "max_unpool2d", "channel_shuffle", "pixel_shuffle"}
# Of a lone channel the stride has another number, which reaches nothing.
OF_MORE = {
    "by other dims",
    "group_norm",
    "double group_norm",
    "double layer_norm",
    "sort",
    "batch_norm",
}
NO_GRADIENT_ON_NPU = {"nearest", "nearest-exact", "bicubic"}


def strides_of(name, x):
    pairs = zip(x.shape, x.stride(), strict=True)
    return tuple(s for n, s in pairs if n > 1 or name not in OF_MORE)


@pytest.mark.parametrize(
    "form", ["contiguous", "channels last", "sliced", "permuted", "transposed", "lone channel"]
)
@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("name", CALLS)
def test_strides_are_torchs(name, device, form):
    left = NO_GRADIENT | (NO_GRADIENT_ON_NPU if device == "npu" else set())
    seen = []
    for t in (mindtorch, torch):
        x = image(t, form, "cpu" if t is torch else device).detach().requires_grad_()
        y = CALLS[name](t, x)
        (gradient,) = t.autograd.grad(y.sum(), x)
        strides = None if name in left else strides_of(name, gradient)
        seen.append((strides_of(name, y), strides, y.tolist(), gradient.tolist()))
    assert seen[0][:2] == seen[1][:2]
    for ours, theirs in zip(seen[0][2:], seen[1][2:], strict=True):
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs))


@pytest.mark.parametrize("name", ["adaptive_avg_pool3d", "adaptive_max_pool3d", "avg_pool3d"])
def test_volumes_that_are_pooled_are_contiguous(name):
    seen = []
    for t in (mindtorch, torch):
        x = t.arange(240.0).reshape(2, 3, 4, 5, 2).contiguous(memory_format=t.channels_last_3d)
        seen.append(getattr(t.nn.functional, name)(x, 2).stride())
    assert seen[0] == seen[1]


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_nearest_pixels_are_torchs_at_ratios_that_no_number_of_float32_holds(device):
    pairs = [(14, 46), (26, 22), (28, 46), (30, 58), (2, 41), (2, 47), (4, 82), (59, 13)]
    calls = [{"size": out} for _, out in pairs] + [{"scale_factor": f} for f in (2.3, 1 / 3, 0.7)]
    sizes = [size for size, _ in pairs] + [31, 32, 50]
    for mode in ("nearest", "nearest-exact"):
        for size, call in zip(sizes, calls, strict=True):
            ours, theirs = (
                t.nn.functional.interpolate(
                    t.arange(1.0, size + 1)[None, None].to(d), mode=mode, **call
                )
                for t, d in ((mindtorch, device), (torch, "cpu"))
            )
            assert ours.tolist() == theirs.tolist(), (mode, size, call)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_places_between_pixels_are_those_of_torch(device, mode):
    """Numbers of float32: with exact ones the values here differ by 1e-4."""
    x = torch.arange(250000.0).reshape(1, 1, 500, 500).sin()
    ours = mindtorch.tensor(x.tolist(), device=device)
    settings = {"size": (7, 333), "mode": mode, "align_corners": True}
    got = mindtorch.nn.functional.interpolate(ours[:, :, :9], **settings)
    expected = torch.nn.functional.interpolate(x[:, :, :9], **settings)
    torch.testing.assert_close(torch.tensor(got.tolist()), expected, rtol=0, atol=5e-6)
