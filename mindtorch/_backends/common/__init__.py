"""What every backend does alike: views and conversions."""
