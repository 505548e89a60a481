"""torch.fx.passes.infra: passes, their order, and partitions."""
