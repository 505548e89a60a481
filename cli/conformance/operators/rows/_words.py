"""What rows are written in beside spec: numpy, types, and drawing by hand."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.random import Generator

from ....judge.precision import Array
from ....spec.domains import Content, Domain, Draw
from ....spec.sizes import resolve

__all__ = [
    "Any", "Array", "Callable", "Content", "Domain", "Draw", "Final", "Generator", "Sequence", "np",
    "replace", "resolve",
]  # fmt: skip
