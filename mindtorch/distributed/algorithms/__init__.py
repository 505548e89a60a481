"""torch.distributed.algorithms: hooks of DistributedDataParallel are here."""
