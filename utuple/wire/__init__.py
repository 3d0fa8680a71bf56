"""The protocol: generated code, and the codec between it and the model."""
