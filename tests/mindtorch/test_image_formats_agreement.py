"""What is computed from images has torch's strides, whatever the strides of the images are."""

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")


def image(t, form):
    x = t.arange(240, dtype=t.float32).reshape(2, 4, 5, 6)
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
        x, t.arange(x.numel()).reshape(x.shape) % (x.numel() // x.size(0) // x.size(1)), 2
    ),
    "pad": lambda t, x: t.nn.functional.pad(x, (1, 1)),
    "reflect": lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    "replicate": lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1), mode="replicate"),
    "circular": lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1), mode="circular"),
    "pixel_shuffle": lambda t, x: t.nn.functional.pixel_shuffle(x, 2 if x.size(1) == 4 else 1),
    "pixel_unshuffle": lambda t, x: t.nn.functional.pixel_unshuffle(x[..., :4, :4], 2),
    **{f"stack {d}": lambda t, x, d=d: t.stack([x, x], d) for d in range(5)},
    "stack of two formats": lambda t, x: t.stack([x, x.contiguous()]),
}
# Whose gradients have the usual order here.
NO_GRADIENT = {"adaptive_max_pool2d", "max_unpool2d", "channel_shuffle", "pixel_shuffle"}


@pytest.mark.parametrize(
    "form", ["contiguous", "channels last", "sliced", "permuted", "transposed", "lone channel"]
)
@pytest.mark.parametrize("name", CALLS)
def test_strides_are_torchs(name, form):
    seen = []
    for t in (mindtorch, torch):
        x = image(t, form).detach().requires_grad_()
        y = CALLS[name](t, x)
        (gradient,) = t.autograd.grad(y.sum(), x)
        strides = None if name in NO_GRADIENT else gradient.stride()
        seen.append((y.stride(), strides, y.tolist(), gradient.tolist()))
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
