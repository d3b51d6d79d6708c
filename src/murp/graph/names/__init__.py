"""Names of entities and relations.

vocabulary.py  from index to name and back
tidy.py        the one rule for names, which every format shares
lookup.py      many names at once as numbers
spelling.py    suggestions for misspelt names
checks.py      a file of names: ids that are named twice, or that the graph does not have
"""
