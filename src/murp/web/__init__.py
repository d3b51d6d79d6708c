"""What the explorer and the server of predictions share: a port, who may ask, and what one client may take.

server.py      binding to a port, and serving an application until its end
background.py  a server in a thread of this process
door.py        letting clients in, no more than there are places for
protocol.py    what one connection may take: bytes, time, a place
application.py an application with routes, and what they give and document
security.py    who may ask, and what a browser may do with the answer
refusals.py    what is said if there is no answer
names.py       looking entities and relations up
predictions.py answers to a question as JSON has them
encoding.py    answers as bytes
schema.py      the shape of a refusal
"""
