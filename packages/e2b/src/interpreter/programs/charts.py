"""Reads the data of matplotlib's figures. Python 3.8 or later."""


def chart_of(figure):
    return None
