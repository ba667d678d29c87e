"""Pulumi asks, and only here. ``classes`` and ``native`` hold what programs declare, ``dynamic`` and ``plugin`` serve it by ``adapter``."""

from importlib.util import find_spec

if find_spec("pulumi") is None:
    raise ModuleNotFoundError("this needs Pulumi's SDK. Next: pip install 'pulumi-hosting[pulumi]'", name="pulumi")
