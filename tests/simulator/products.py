"""Tests of operators that the default product lacks: they run in children with other profiles."""

import os
from collections.abc import Callable
from typing import Any

import pytest

PROFILES = ("310P", "910_93", "950")
INSIDE = os.environ.get("ACLSIM_SOC", "")


def on(profile: str) -> Callable[[Any], Any]:
    """A test that runs only in the child with that profile."""
    skip = pytest.mark.skipif(profile != INSIDE, reason=f"runs in the child that is a {profile}")
    return lambda test: pytest.mark.product(skip(test))
