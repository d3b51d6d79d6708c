"""Finding flaws and oddities of a dataset.

audit.py           all checks, counted and shown
relation_pairs.py  redundant relations
similar_names.py   names that may be one thing in two spellings
"""
