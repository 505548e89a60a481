"""torch_npu.utils: what programs ask about the install."""

from ..npu.utils import get_cann_version as get_cann_version
