"""torch.onnx.symbolic_opset11: symbols of an exporter that is not here; none is defined."""
