"""What the programs here share: a check is a function, and prints one line.

Promises: every check is made, in the order given, whatever became of the one before; each that passes prints "ok NAME"; when one
failed, its trace is shown and the program ends with a failure. Knows neither a framework nor which server it is that answers.
"""

import asyncio
import inspect
import sys
import traceback

URL = sys.argv[1]


def url_for(scheme):
    """The server's URL with another scheme, as frameworks name their drivers."""
    return scheme + URL[URL.index(":") :]


def equal(found, expected, what=""):
    if found != expected:
        raise AssertionError(f"{what}: found {found!r}, expected {expected!r}")


def fails(kind, work, **attributes):
    """Does the work, which must raise this kind of error with these attributes."""
    try:
        work()
    except kind as error:
        for name, value in attributes.items():
            equal(getattr(error, name), value, name)
        return error
    raise AssertionError(f"no {kind.__name__} where one was expected")


async def fails_later(kind, awaitable):
    """Awaits what must raise this kind of error."""
    try:
        await awaitable
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} where one was expected")


def make(*checks):
    """Makes the checks and ends the program. A check is called after its function: check_types is "types"."""

    async def all_of_them():
        failed = False
        for check in checks:
            try:
                outcome = check()
                if inspect.isawaitable(outcome):
                    await outcome
                print("ok", check.__name__.removeprefix("check_"), flush=True)
            except Exception:
                failed = True
                print("FAILED", check.__name__.removeprefix("check_"), flush=True)
                traceback.print_exc(file=sys.stdout)
                sys.stdout.flush()
        return failed

    if any(inspect.iscoroutinefunction(check) for check in checks):
        sys.exit(asyncio.run(all_of_them()))
    # Without a loop: some frameworks refuse to block where one runs.
    try:
        all_of_them().send(None)
    except StopIteration as end:
        sys.exit(end.value)
