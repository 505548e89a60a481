"""Lets tests below find what those of the command share, such as the browser."""
