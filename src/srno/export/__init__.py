"""Models as ONNX graphs, built from the operator's algebra with standard operators."""
