"""A trained run in the browser: a JSON interface and one page.

app.py         the routes, documented by OpenAPI
fast_path.py   the most frequent question, answered before the routes
answers.py     what each of them computes, plain functions
collection.py  what is shown: a PreparedRun is one run with its tables, a Collection one or two of them on one graph
disk_scaling.py  distances scaled so that a picture fills the disk
tree.py        the hierarchy: a parent for each entity, and who matters
facts.py       known facts of an entity, what is likely, why
suggestions.py questions to begin with
columns.py     what points are coloured and sized by
differences.py where runs differ most
server.py      its applications, served by :mod:`murp.web`, which has its bounds and its refusals
notebook.py    in a notebook: a server in a thread, shown in a frame
snapshots.py   how a picture grew, kept in the run folder
live.py        a training that is watched; watched.py serves it while it trains
animation.py   the snapshots as a GIF, an MP4 or a page
tree_demo.py   a run that shows the layout of a tree, for `murp demo`
export.py      one file without a server
markup.py      the pages' files, each in the frame that all share
page/          the page itself: HTML, CSS and JavaScript as the browser reads them
"""
