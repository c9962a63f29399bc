"""What is run for the reader: the demo."""
