"""torch.utils.deterministic: whether memory that nobody wrote is filled; it is not."""

fill_uninitialized_memory = False
