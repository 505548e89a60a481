"""Owns which product judges an operator: a simulator can be those that the run's own is not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from aclnn_bindings import product_of, support
from aclnn_bindings.install import simulated

from .pool import EnvironmentFailedError, Setup

_VARIABLE: Final = "ACLSIM_SOC"


class Products:
    """The products of a run: the one of its environment, and others for operators that documents
    list for those alone, where a simulator was not told what to be."""

    def __init__(self, setup: Setup, environment: Mapping[str, Any], compare: bool) -> None:
        self.own = str(environment.get("soc", ""))
        product = setup.soc or os.environ.get(_VARIABLE, "")
        simulates = environment.get("kind") == "simulator"
        if setup.soc and not simulates:
            raise EnvironmentFailedError(
                f"--soc is the simulator's; {environment.get('install') or setup.device} is none"
            )
        if simulates and product not in self.own:  # a short name such as 310P is a part of it
            raise EnvironmentFailedError(
                f"the simulator knows no product {product!r},"
                f" only {', '.join(simulated.products())}"
            )
        free = simulates and not product and not compare
        self.others = simulated.products() if free else ()

    def lack(self, operator: str) -> bool:
        """Whether documents list `operator`, and not for the run's own product."""
        documented = support(operator)
        return documented is not None and documented.on(product_of(self.own)) is False

    def soc(self, operator: str) -> str:
        """The product to judge `operator` as; "" for the run's own."""
        documented = support(operator) if self.others else None
        if documented is None or not self.lack(operator):
            return ""
        return next((soc for soc in self.others if documented.on(product_of(soc))), "")
