"""Standing in for torch: what `import torch` finds, and what is said of names that are absent."""
