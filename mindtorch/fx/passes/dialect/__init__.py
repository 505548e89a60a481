"""torch.fx.passes.dialect: passes over graphs of one set of operators."""
