"""Owns torch.backends.cpu's name: which instructions the kernels choose."""


def get_cpu_capability() -> str:
    """DEFAULT: numpy chooses its instructions itself."""
    return "DEFAULT"
