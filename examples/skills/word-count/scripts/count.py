#!/usr/bin/env python3
"""Prints the number of words of its standard input, and the most frequent word."""

import collections
import sys

words = sys.stdin.read().lower().split()
frequent = collections.Counter(words).most_common(1)
print(len(words), *(word for word, _ in frequent))
