"""torch._dynamo.backends.registry: backends by name."""

from .. import (
    list_backends as list_backends,
    lookup_backend as lookup_backend,
    register_backend as register_backend,
)

register_debug_backend = register_experimental_backend = register_backend
