"""torch's operator database held against mindtorch: every entry's samples, forward and backward."""
