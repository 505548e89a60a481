"""What an install declares: signatures, catalogs of known versions, how a C type is passed."""
