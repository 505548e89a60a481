"""torch.distributed.algorithms._checkpoint: modules that keep few activations."""
