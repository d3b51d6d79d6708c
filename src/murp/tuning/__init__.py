"""Tuning: a search for settings, with TPE and ASHA by Optuna, kept in a file and continued from there.

space.py    what is searched: from the settings' own declarations, narrowed by the user, without contradictions
study.py    the file: one search at a time in it, what it is a search of, trials that were interrupted
trial.py    one trial: a training that reports its validations and is stopped where others were better
search.py   trials one after another, or by several processes
results.py  the results: a row for each trial
report.py   the same as Markdown, CSV and a picture, with the importance of each setting

Trials are judged by their MRR on valid, protocol standard. Test is never looked at.
"""
