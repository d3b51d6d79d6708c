"""Folders that other tools write: a file each."""
