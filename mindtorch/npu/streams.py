"""torch.npu.streams: torch.npu's streams and events by this address."""

from .._backends.npu.streams import Event, Stream

__all__ = ["Event", "Stream"]
