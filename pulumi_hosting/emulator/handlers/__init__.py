"""One function per operation, named by the operation's id: every public function of these modules is a
handler.

An operation without a handler is answered with 501; ``tests/emulator/test_handlers.py`` lists such
operations.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import isfunction
from pkgutil import iter_modules

from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.messages import Answer
from pulumi_hosting.emulator.webhook_delivery import Outbound

Handler = Callable[[Call], Answer | Outbound]

_MODULES = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)]
HANDLERS: Mapping[str, Handler] = {
    name: value
    for module in _MODULES
    for name, value in vars(module).items()
    if isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
}
