"""What a tensor is: dtype, device, geometry, storage."""
