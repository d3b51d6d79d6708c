"""A trained run in the browser: a JSON interface and one page.

app.py         the routes, documented by OpenAPI
quick.py       the question that is asked most, past the routes
answers.py     what each of them computes, plain functions
collection.py  the runs shown, with their tables
names.py       looking entities and relations up
refusals.py    what is said where there is no answer
security.py    who may ask, and what a browser may do with the answer
protocol.py    what one connection may take: bytes, time, a place
door.py        letting clients in, no more than there are places for
server.py      binding to a port
export.py      one file without a server
page/          the page itself: HTML, CSS and JavaScript as the browser reads them
"""
