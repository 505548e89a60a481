"""Kernels of image: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, Simulator

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


@pytest.fixture
def sim(sim: Any) -> Any:
    """Tensors in ND: channels are last here, and a format would say otherwise."""
    return Simulator(sim.cann, {})


def image(*shape: int, seed: int = 0) -> Any:
    """Bytes, channels last."""
    g = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, shape or (1, 8, 6, 3), generator=g, dtype=torch.uint8)


def near(sim: Any, op: str, *args: Any, off: int = 1) -> None:
    """Bytes may differ by the rounding of one step."""
    for given, out in sim.run(op, *args):
        assert (given.int() - out.expected.int()).abs().max() <= off, op


def test_histograms_are_stretched_as_pil_does(sim: Any) -> None:
    ops = pytest.importorskip("PIL.ImageOps", reason="PIL is the oracle of histograms")
    from PIL import Image

    x = (image(1, 40, 30, 3) // 3 + 40).contiguous()
    picture = Image.fromarray(x[0].numpy())

    def given(made: Any) -> Any:
        return torch.tensor(list(made.tobytes()), dtype=torch.uint8).view(1, 40, 30, 3)

    sim.check("acldvppEqualize", x, Out(given(ops.equalize(picture))))
    sim.check(
        "acldvppAutoContrast", x, (2.0, 3.0), (), Out(given(ops.autocontrast(picture, (2, 3))))
    )


def test_images_that_do_not_fit_are_refused_with_codes_of_their_own(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x = image()
    cases = {
        "acldvppCrop": (x, 5, 0, 4, 3, Out(x)),
        "acldvppInvert": (x, Out(x[:, 1:])),
        "acldvppAdjustHue": (x, 0.7, Out(x)),
    }
    for op, args in cases.items():
        with pytest.raises(AclError) as refused:
            sim.run(op, *args)
        assert refused.value.code == 106002


def encoded(sim: Any, x: Any, quality: int) -> bytes:
    room = torch.zeros(1 << 16, dtype=torch.uint8)
    ((file, _),) = sim.run("acldvppEncodeJpeg", x, quality, Out(room))
    raw = bytes(file.tolist())
    return raw[: raw.rindex(b"\xff\xd9") + 2]


def smooth(channels: int) -> Any:
    """An image that JPEG keeps well."""
    y, x = torch.meshgrid(torch.arange(21.0), torch.arange(30.0), indexing="ij")
    waves = [127 + 100 * torch.sin(x / 9 + k) * torch.cos(y / 7) for k in range(channels)]
    return torch.stack(waves, -1)[None].round().to(torch.uint8)


@pytest.mark.parametrize("channels", [1, 3])
def test_files_hold_what_was_put_into_them(sim: Any, channels: int) -> None:
    x = smooth(channels)
    file = torch.tensor(list(encoded(sim, x, 95)), dtype=torch.uint8)
    near(sim, "acldvppDecodeJpeg", file, channels, False, Out(x), off=6)


def test_files_are_read_and_written_as_pil_does(sim: Any) -> None:
    pil = pytest.importorskip("PIL.Image", reason="PIL is the oracle of JPEG")
    import io

    x = smooth(3)
    read = pil.open(io.BytesIO(encoded(sim, x, 95)))
    pixels = torch.tensor(list(read.convert("RGB").tobytes()), dtype=torch.uint8).view(x.shape)
    assert (pixels.int() - x.int()).abs().max() <= 6
    for options in ({"subsampling": 0}, {"subsampling": 2}, {"subsampling": 1, "optimize": True}):
        file = io.BytesIO()
        pil.fromarray(x[0].numpy()).save(file, "JPEG", quality=92, **options)
        decoded = pil.open(io.BytesIO(file.getvalue())).convert("RGB")
        expected = torch.tensor(list(decoded.tobytes()), dtype=torch.uint8).view(x.shape)
        given = torch.tensor(list(file.getvalue()), dtype=torch.uint8)
        # libjpeg smooths colours that were taken together, this decoder repeats them.
        near(sim, "acldvppDecodeJpeg", given, 3, False, Out(expected), off=24)


def test_what_is_no_file_fails_on_the_stream(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x = smooth(3)
    whole = encoded(sim, x, 50)
    for raw, reason in ((b"nothing of it", "does not begin"), (whole[:-60], "ends early"),
                        (whole[:90], "cut short|missing")):  # fmt: skip
        file = torch.tensor(list(raw), dtype=torch.uint8)
        with pytest.raises(AclError, match=reason):
            sim.run("acldvppDecodeJpeg", file, 3, False, Out(x))
    cut = torch.tensor(list(whole[:-60]), dtype=torch.uint8)
    ((part, _),) = sim.run("acldvppDecodeJpeg", cut, 3, True, Out(x))
    assert (part[:, :8].int() - x[:, :8].int()).abs().max() < 30


def test_the_gradient_of_a_grid_sums_many_channels_without_loss(sim: Any) -> None:
    x, grid = torch.rand(1, 512, 8, 8) * 100, torch.tensor([[[[0.3, -0.4]]]])
    g = torch.ones(1, 512, 1, 1)
    exact = torch.ops.aten.grid_sampler_2d_backward(
        g.double(), x.double(), grid.double(), 0, 0, False, [True, True]
    )
    seen = sim.run("aclnnGridSampler2DBackward", g, x, grid, 0, 0, False, (True, True),
                   Out(torch.zeros_like(x)), Out(torch.zeros_like(grid)))[1][0]  # fmt: skip
    # Slopes and weights are float32; their sum of 2,048 terms up to 400 is rounded once.
    terms = 2048 * 400 * 2.0**-24
    assert (seen - exact[1]).abs().max() < 4 * terms**0.5
