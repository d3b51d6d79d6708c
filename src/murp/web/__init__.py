"""What the explorer and the server of predictions share: a port, who may ask, and what one client may take.

server.py      binding to a port, and serving an application until its end
background.py  a server in a thread of this process
connections.py accepting clients, up to a maximum number of connections
protocol.py    the limits of one connection: bytes and time
application.py an application with routes, and what they give and document
security.py    which requests are accepted, and what a browser may do with the answer
refusals.py    error responses
names.py       looking entities and relations up
predictions.py answers to a question as JSON has them
encoding.py    answers as bytes: JSON, and arrays in base64
schema.py      the shape of a refusal
"""
