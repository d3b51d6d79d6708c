"""What ``import murp`` offers: the same functions as the command line, which calls them.

run.py          ``murp.Run``: a run folder with everything that can be done with it
training.py     making runs and opening them
settings.py     the settings of a run as keyword arguments, written by ``tools/signatures.py``
hierarchies.py  one hierarchy, embedded or laid out
tuning.py       a search for settings
serving.py      a run as a service
graphs.py       graphs without a model; starts without PyTorch

Nothing is imported here, so that each module imports only what it needs.
"""
