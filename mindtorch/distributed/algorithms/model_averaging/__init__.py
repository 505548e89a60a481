"""torch.distributed.algorithms.model_averaging: parameters averaged now and then."""
