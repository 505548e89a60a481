"""torch.fx.experimental.proxy_tensor: nothing is traced."""

from ..._compat.refusals import refused

make_fx = refused("torch.fx.experimental.proxy_tensor.make_fx", "mindtorch traces nothing")


def get_proxy_mode() -> None:
    """None: nothing is traced."""
