"""Enlarge pictures: the Python API, and batches with their sources, sizes and names."""
