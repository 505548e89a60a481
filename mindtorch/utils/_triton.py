"""torch.utils._triton: there is no triton."""


def has_triton() -> bool:
    """False: kernels are ACLNN's or numpy's."""
    return False


has_triton_package = has_triton
