"""Bridges to other libraries, each imported on its own: scikit-learn's manners, and PyKEEN both ways."""
