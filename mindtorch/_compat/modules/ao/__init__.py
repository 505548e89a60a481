"""torch.ao: quantisation of modules in eager mode."""
