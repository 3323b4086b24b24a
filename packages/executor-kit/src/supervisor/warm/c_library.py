"""Calls C library functions through the core of ctypes, so that a block sees no ctypes module that it has not imported itself.

Python 3.8 or later, standard library only.
"""

import _ctypes


class Pointer(_ctypes._SimpleCData):
    _type_ = "P"


class Number(_ctypes._SimpleCData):
    _type_ = "i"


class Function(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_PYTHONAPI
    _restype_ = Number


class PointerFunction(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL
    _restype_ = Pointer


C_KINDS = {Pointer, Number, Function, PointerFunction}
library = _ctypes.dlopen(None, 0)


def number_function(name):
    return Function(_ctypes.dlsym(library, name))


def pointer_function(name):
    return PointerFunction(_ctypes.dlsym(library, name))


prctl = number_function("prctl")


def control_process(option, *words):
    return prctl(Pointer(option), *[Pointer(word) for word in (words + (0, 0, 0, 0))[:4]])
