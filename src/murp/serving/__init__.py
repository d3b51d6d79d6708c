"""A trained run as a service: questions over HTTP, answered in JSON.

app.py         the routes, documented by OpenAPI
middleware.py  keys and counters: every request passes through it
parsing.py     from the bytes of a request to questions, or an error response
answering.py   from questions to answers, within a time
loaded.py      a run held ready
current.py     the run that is served, and the one that replaces it
limits.py      how much a client may ask
access.py      API keys, and how much each client may ask
metrics.py     counters, as Prometheus reads them
documentation.py  the page that explains the interface
schema.py      the shapes, for OpenAPI
server.py      serving until the end, or in the background
"""
