"""What torch gives for the rows of fft."""

import torch

from ._arguments import t


def stft(a):
    window = None if a["windowOptional"] is None else t(a["windowOptional"])
    y = torch.stft(t(a["self"]), a["nFft"], a["hopLength"], a["winLength"], window, False,
                   normalized=a["normalized"], onesided=a["onesided"],
                   return_complex=True)  # fmt: skip
    return y if a["returnComplex"] else torch.view_as_real(y)


ORACLES = {
    "aclRfft1D": lambda a: torch.view_as_real(
        torch.fft.rfft(
            t(a["self"]), a["n"], a["dim"], ("backward", "forward", "ortho")[a["norm"] - 1]
        )
    ),
    "aclStft": stft,
}
