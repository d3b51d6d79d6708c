"""Interfaces of other libraries, each imported separately: scikit-learn, and PyKEEN in both directions."""
