"""torch.utils.deterministic: whether deterministic algorithms fill memory that nobody wrote."""

fill_uninitialized_memory = True
