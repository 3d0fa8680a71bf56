"""The model: uTuples, conditions, matching, keys and sections. Pure."""
