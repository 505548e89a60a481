"""The transforms of distributions, by what they map."""
