"""Images of bytes are resized with antialiasing in fixed point: each byte is torch's."""

import pytest

import mindtorch
from tests.mindtorch.agreement import agree


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(10, 15), (7, 41), (33, 5), (20, 11), (3, 3)])
def test_bytes_are_torchs(size, mode, device):
    def run(lib):
        place = device if lib is mindtorch else "cpu"
        x = (lib.arange(3600.0).mul(0.7).sin().add(1) * 127.5).to(lib.uint8).reshape(2, 3, 20, 30)
        resize = lib.nn.functional.interpolate
        return resize(x.to(place), size, mode=mode, antialias=True).cpu().contiguous()

    agree(run)


@pytest.mark.parametrize("corners", [False, True])
def test_bytes_resized_by_factors_and_corners_are_torchs(corners):
    def run(lib):
        x = (lib.arange(600.0).sin().add(1) * 127.5).to(lib.uint8).reshape(1, 1, 20, 30)
        resize = lib.nn.functional.interpolate
        words = {"mode": "bilinear", "antialias": True, "align_corners": corners}
        return resize(x, scale_factor=(0.4, 1.7), **words), resize(x, (9, 9), **words)

    agree(run)


def test_the_processors_capability_is_torchs():
    agree(lambda lib: lib.backends.cpu.get_cpu_capability())
