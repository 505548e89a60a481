"""torch._functorch: names that libraries import and replace; torch.func has what they compute."""
