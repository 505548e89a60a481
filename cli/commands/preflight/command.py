"""The command `preflight`: chips and links in seconds, for the start of a job."""

from __future__ import annotations

import time
from pathlib import Path

import click

from ... import choices, planted_faults

EPILOG = """\b
Examples:
  mindtorch-npu preflight                        a minute, every NPU of this host
  mindtorch-npu preflight --seconds 20 --device npu:0-3 && torchrun train.py

Exit codes: 0 every chip and link is right, 1 one is wrong, 2 usage, 3 no worker starts, 5 nothing
is wrong, and not everything could be judged in time."""


@click.command(epilog=EPILOG)
@click.option("--seconds", type=choices.Seconds(5), default=60.0, show_default=True,
              help="Time limit in all, in seconds.")  # fmt: skip
@click.option(
    "--device",
    type=choices.DeviceWords(),
    default="all",
    show_default=True,
    help="npu:0, npu:0-7, npu:0,2 or all.",
)
@click.option("--home", type=click.Path(path_type=Path), help="The CANN toolkit to use.")
@click.option("--simulator", is_flag=True, help="Use the bundled simulator.")
@click.option("--journal", "book", type=choices.AppendedFile(),
              help="Record the run in this file, for `report`.")  # fmt: skip
def preflight(
    seconds: float, device: str, home: Path | None, simulator: bool, book: Path | None
) -> int:
    """Find faulty chips and links within seconds, before a job starts.

    On every device: cases for each unit of a chip, then as many operators as half of the time
    allows, against their references; repeated launches, compared bit by bit between devices; at the
    same time a ring over HCCL. Work that is unfinished when the time is up is stopped.
    """
    from .runner import run

    started = click.get_current_context().find_root().obj or time.monotonic()
    with planted_faults.watch():
        return run(seconds, device, home, simulator, book, started)
