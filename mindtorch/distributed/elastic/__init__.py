"""torch.distributed.elastic: what launched processes tell: errors, events, metrics, timers."""
