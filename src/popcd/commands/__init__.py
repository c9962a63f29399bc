"""The commands of the command line, one file each; JAX loads inside them, so that help appears at once."""
