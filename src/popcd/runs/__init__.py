"""Training runs that live in a folder: configuration, metrics, checkpoints, the finished machine."""
