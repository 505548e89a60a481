"""Rows of torch.masked."""
