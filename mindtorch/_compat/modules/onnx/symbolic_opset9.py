"""torch.onnx.symbolic_opset9: symbols of an exporter that is not here; none is defined."""
