"""The one judge of numbers: metrics, tiers, rules, classes, guards; knows no tensor library."""

from typing import Final

# The standards that `standards.py` judges by; here, where asking for their names costs no import.
STANDARDS: Final = ("mixed", "stat_rel_err", "close", "cosine", "requant", "quant", "binary",
                    "cross_check")  # fmt: skip
