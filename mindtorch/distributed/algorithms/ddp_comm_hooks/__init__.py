"""torch.distributed.algorithms.ddp_comm_hooks: what sends gradients, by kinds."""
