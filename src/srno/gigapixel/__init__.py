"""Pictures of any size from file to file: tiles and passes, on one machine or on a cluster."""
