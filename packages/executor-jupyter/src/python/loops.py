"""Lets cells run event loops of their own, although the kernel runs them in one. Python 3.8 or later, standard library only."""

import asyncio
import contextlib
import functools
import threading

kernel_loop = None


def allow_loops():
    """Makes `asyncio.run` and the like work in cells, as they do in programs. Call it in a cell."""
    global kernel_loop
    if kernel_loop is None:
        base = asyncio.base_events.BaseEventLoop
        asyncio.run = asyncio.runners.run = beside_the_kernel(asyncio.run)
        base.run_forever = beside_the_kernel(base.run_forever)
        base.run_until_complete = beside_the_kernel(base.run_until_complete)
        if hasattr(asyncio, "Runner"):
            asyncio.Runner.run = beside_the_kernel(asyncio.Runner.run)
    kernel_loop = asyncio._get_running_loop()


def beside_the_kernel(run):
    @functools.wraps(run)
    def wrapped(*args, **options):
        outer = asyncio._get_running_loop()
        if outer is None or outer is not kernel_loop or threading.current_thread() is not threading.main_thread():
            return run(*args, **options)
        with suspended(outer):
            # The kernel's loop cannot run within itself, but a coroutine does not depend on it.
            if len(args) == 2 and args[0] is outer and asyncio.iscoroutine(args[1]):
                return asyncio.run(args[1])
            return run(*args, **options)

    return wrapped


@contextlib.contextmanager
def suspended(loop):
    """Hides a loop, which waits for the current call anyway, by the functions that asyncio has for other loops."""
    task = asyncio.current_task(loop)
    if task is not None:
        asyncio.tasks._leave_task(loop, task)
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)
        if task is not None:
            asyncio.tasks._enter_task(loop, task)
        asyncio.set_event_loop(loop)
