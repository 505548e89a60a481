"""Owns what an install's platform files state about a product's matrix units.

CANN installs a file for each product: `data/platform_config/Ascend910B2.ini`, with the cores under
[SoCInfo], and what a core multiplies in a cycle, and its clock in MHz, under [AICoreSpec].
"""

from __future__ import annotations

import configparser
from pathlib import Path

_PLACES = ("data", "*/data", "*/*/data")


def product_rate(home: Path, soc: str) -> float | None:
    """Operations per second of 16-bit matrix products that the install states for a SoC; None
    where no file states them."""
    files = (p for at in _PLACES for p in home.glob(f"{at}/platform_config/{soc}.ini"))
    return next((rate for p in files if (rate := _rate(p)) is not None), None)


def _rate(path: Path) -> float | None:
    config = configparser.ConfigParser(strict=False, interpolation=None)
    try:
        config.read_string(path.read_text(encoding="utf-8", errors="replace"))
        chip, core = config["SoCInfo"], config["AICoreSpec"]
        cores = int(chip.get("cube_core_cnt") or chip["ai_core_cnt"])
        products = [int(core[f"cube_{axis}_size"]) for axis in "mnk"]
        clock = float(core["cube_freq"]) * 1e6
    except (OSError, ValueError, KeyError, configparser.Error):
        return None
    rate = 2.0 * cores * products[0] * products[1] * products[2] * clock
    return rate if rate > 0 else None
