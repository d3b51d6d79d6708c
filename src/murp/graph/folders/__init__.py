"""Folders that other tools write: one file each."""
