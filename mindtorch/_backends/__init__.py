"""Where ops run: a package per device, what they share in `common`, who is there in `registry`."""
