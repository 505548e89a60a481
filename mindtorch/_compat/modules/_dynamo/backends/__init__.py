"""torch._dynamo.backends: what makes backends of compilers."""
