"""Kernels of image: results equal a reference, and what they refuse."""

import colorsys
from typing import Any

import pytest
from kernel_harness import Out, Simulator, accepted
from torch_samples import noise

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

F = torch.nn.functional


@pytest.fixture
def sim(sim: Any) -> Any:
    """Tensors in ND: channels are last here, and a format would say otherwise."""
    return Simulator(sim.cann, {})


def image(*shape: int, seed: int = 0) -> Any:
    """Bytes, channels last."""
    g = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, shape or (1, 8, 6, 3), generator=g, dtype=torch.uint8)


def planes(x: Any) -> Any:
    return x.permute(0, 3, 1, 2).double()


def back(x: Any) -> Any:
    return x.permute(0, 2, 3, 1).round().clamp(0, 255).to(torch.uint8).contiguous()


def near(sim: Any, op: str, *args: Any, off: int = 1) -> None:
    """Bytes may differ by the rounding of one step."""
    for given, out in sim.run(op, *args):
        assert (given.int() - out.expected.int()).abs().max() <= off, op


def test_orders_of_channels_change(sim: Any) -> None:
    x = image()
    swapped = x.permute(0, 3, 1, 2).contiguous()
    sim.check("acldvppHWC2CHW", x, Out(swapped))
    sim.check("acldvppCHW2HWC", swapped, Out(x))
    sim.check("acldvppImgToTensor", x, Out(swapped.float() / 255))


def test_windows_flips_and_borders(sim: Any) -> None:
    x = image()
    sim.check("acldvppCrop", x, 1, 2, 4, 3, Out(x[:, 1:5, 2:5].contiguous()))
    sim.check("acldvppHorizontalFlip", x, Out(x.flip(2)))
    sim.check("acldvppVerticalFlip", x, Out(x.flip(1)))
    erased = x.clone()
    erased[:, 1:5, 2:5] = torch.tensor([7, 8, 9], dtype=torch.uint8)
    sim.check("acldvppErase", x, 1, 2, 4, 3, (7.0, 8.0, 9.0), Out(erased))
    for number, mode in ((0, "constant"), (1, "replicate"), (2, "reflect")):
        value = {"value": 5} if number == 0 else {}
        y = F.pad(planes(x), (1, 2, 3, 4), mode, **value)
        sim.check("acldvppPad", x, (1, 3, 2, 4), number, (5.0, 5.0, 5.0), Out(back(y)))
    rows = torch.cat([x[:, :2].flip(1), x, x[:, -2:].flip(1)], 1)
    sim.check("acldvppPad", x, (0, 2), 3, (0.0,), Out(rows))


@pytest.mark.parametrize(("mode", "name"), [(0, "bilinear"), (1, "nearest"), (2, "bicubic")])
def test_images_are_resized(sim: Any, mode: int, name: str) -> None:
    x = image()
    corners = {} if name == "nearest" else {"align_corners": False}
    for size in ((5, 9), (16, 3)):
        near(sim, "acldvppResize", x, mode,
             Out(back(F.interpolate(planes(x), size, mode=name, **corners))))  # fmt: skip
    part = F.interpolate(planes(x)[:, :, 1:5, 2:6], (6, 6), mode=name, **corners)
    near(sim, "acldvppCropAndResize", x, 1, 2, 4, 4, (6, 6), mode, Out(back(part)))


def test_blends_change_light_and_colour(sim: Any) -> None:
    x = image()
    p = planes(x)
    weights = torch.tensor([0.2989, 0.587, 0.114], dtype=torch.float64)
    gray = (p * weights[:, None, None]).sum(1, keepdim=True).floor()
    near(sim, "acldvppAdjustBrightness", x, 1.3, Out(back(p * 1.3)))
    near(sim, "acldvppAdjustContrast", x, 0.6, Out(back(0.6 * p + 0.4 * gray.mean())))
    near(sim, "acldvppAdjustSaturation", x, 1.7, Out(back(1.7 * p - 0.7 * gray)))
    near(sim, "acldvppRgbToGrayscale", x, 3, Out(back(gray.expand(1, 3, 8, 6))))
    kernel = torch.ones(3, 1, 3, 3, dtype=torch.float64)
    kernel[:, :, 1, 1] = 5
    blurred = p.clone()
    blurred[..., 1:-1, 1:-1] = F.conv2d(p, kernel / 13, groups=3).round()
    near(sim, "acldvppAdjustSharpness", x, 0.5, Out(back(0.5 * p + 0.5 * blurred)))


def test_hue_turns_on_the_circle(sim: Any) -> None:
    x = image()
    turned = torch.tensor([[
        [c * 255 for c in colorsys.hsv_to_rgb((h + 0.2) % 1, s, v)]
        for h, s, v in (colorsys.rgb_to_hsv(*(float(c) / 255 for c in pixel)) for pixel in row)
    ] for row in x[0]])  # fmt: skip
    near(sim, "acldvppAdjustHue", x, 0.2, Out(turned[None].round().to(torch.uint8)))


def test_bytes_are_inverted_and_cut(sim: Any) -> None:
    x = image()
    sim.check("acldvppInvert", x, Out(255 - x))
    sim.check("acldvppPosterize", x, 3, Out(x & 0b11100000))
    sim.check(
        "acldvppSolarize", x, (60.0, 200.0), Out(torch.where((x >= 60) & (x <= 200), 255 - x, x))
    )
    floats = x.float() / 255
    sim.check("acldvppInvert", floats, Out(1 - floats))
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)
    normal = (floats - torch.tensor(mean)) / torch.tensor(std)
    sim.check("acldvppNormalize", floats, mean, std, Out(normal, tolerance=1e-5))


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


@pytest.mark.parametrize(("mode", "order"), [(0, (0, 1, 2, -1)), (4, (2, 1, 0)), (2, (2, 1, 0, -1)),
                                             (1, (0, 1, 2)), (3, (2, 1, 0)), (5, (2, 1, 0, 3)),
                                             (8, (0, 0, 0)), (9, (0, 0, 0, -1))])  # fmt: skip
def test_colours_are_converted_by_their_order(sim: Any, mode: int, order: tuple[int, ...]) -> None:
    channels = {1: 4, 3: 4, 5: 4, 8: 1, 9: 1}.get(mode, 3)
    x = image(1, 4, 5, channels)
    opaque = torch.full((1, 4, 5), 255, dtype=torch.uint8)
    y = torch.stack([opaque if k < 0 else x[..., k] for k in order], -1)
    sim.check("acldvppConvertColor", x, mode, Out(y))


def test_blurring_weighs_neighbours_by_a_bell(sim: Any) -> None:
    x = image()
    bell = torch.exp(-((torch.arange(-1, 2.0, dtype=torch.float64) / 0.8) ** 2) / 2)
    bell /= bell.sum()
    kernel = (bell[:, None] * bell).expand(3, 1, 3, 3)
    y = F.conv2d(F.pad(planes(x), (1, 1, 1, 1), "reflect"), kernel, groups=3)
    near(sim, "acldvppGaussianBlur", x, (3, 3), (0.8, 0.8), 2, Out(back(y)))


def test_warps_undo_what_their_matrix_does(sim: Any) -> None:
    x = image(1, 6, 6, 3)
    shifted = torch.zeros_like(x)
    shifted[:, 1:, 2:] = x[:, :-1, :-2]
    move = (1.0, 0.0, 2.0, 0.0, 1.0, 1.0)
    sim.check("acldvppWarpAffine", x, move, 1, 0, (0.0, 0.0, 0.0), Out(shifted))
    sim.check("acldvppWarpPerspective", x, (*move, 0.0, 0.0, 1.0), 0, 0, (0.0,), Out(shifted))
    turned = x.rot90(1, (1, 2)).contiguous()
    near(sim, "acldvppRotate", x, 90.0, 0, False, (), 0, (0.0,), Out(turned))
    wide = image(1, 4, 7, 3)
    near(
        sim,
        "acldvppRotate",
        wide,
        90.0,
        1,
        True,
        (),
        0,
        (0.0,),
        Out(wide.rot90(1, (1, 2)).contiguous()),
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


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 3, 2, 4, 5)])
def test_affine_grids_equal_torch(sim: Any, corners: bool, size: tuple[int, ...]) -> None:
    dims = len(size) - 2
    theta = noise(2, dims, dims + 1)
    grid = F.affine_grid(theta, list(size), align_corners=corners)
    accepted(sim, "aclnnAffineGrid", theta, size, corners, Out(grid, tolerance=1e-5))
