"""Owns what stands between any program and an install: shims, the interceptor, its recordings."""
