"""Compiled loops that know nothing of models: operations Numba lacks, inner products, elementary functions."""
