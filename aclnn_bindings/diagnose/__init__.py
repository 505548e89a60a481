"""What is wrong with an install: symbols, loading in child programs, causes with fixes."""
