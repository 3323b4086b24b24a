"""Answers the request of `files.py` that the arguments make."""

from _fenced_files import answer, verbs

answer(verbs)
