"""Many pictures in one go: which ones, where to, and one after the other."""
