"""What the readers of all formats share.

files.py         files of triples and of names, whatever their format
facts.py         what a reader returns: facts, names, and what was left out
columns.py       which columns are head, relation and tail
streams.py       opening files, compressed or not
delimited.py     rows separated by tabs or commas
parquet.py       Parquet files, with limits
tables.py        facts from an Arrow table with titled columns
networks.py      facts from nodes and edges: GraphML and NetworkX
apoc.py          what Neo4j's library APOC exports
xml_entities.py  XML that would unpack itself is refused
"""
