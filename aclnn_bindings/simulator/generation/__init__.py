"""Owns writing the simulator's generated sources; refuses to declare what is not exported."""
