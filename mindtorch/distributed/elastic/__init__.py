"""torch.distributed.elastic: what a launched process tells its launcher of its errors."""
