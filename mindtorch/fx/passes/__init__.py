"""torch.fx.passes: what runs over a graph's nodes."""
