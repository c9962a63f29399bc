"""Figures and files: pure functions of result rows."""
