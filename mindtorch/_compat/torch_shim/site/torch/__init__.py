"""What `import torch` finds where this folder is on the path: mindtorch takes its place."""

import mindtorch.as_torch  # noqa: F401
