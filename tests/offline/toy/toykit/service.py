"""The toy service: things in a file, so that every process sees the same ones. TOY_SERVICE names its folder.

`world.json`: the things, and how many there ever were of each name. `faults.json`: what goes wrong.
`calls.jsonl`: the calls of providers.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

INPUTS = ("name", "size", "note")
Thing = dict[str, Any]


def _folder() -> Path:
    return Path(os.environ["TOY_SERVICE"])


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    with (_folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _load(name: str, default: Any) -> Any:
    path = _folder() / name
    return json.loads(path.read_text()) if path.exists() else default


def log(method: str, **arguments: Any) -> None:
    with _locked(), (_folder() / "calls.jsonl").open("a") as file:
        file.write(json.dumps({"method": method, **arguments}) + "\n")


def fault(key: str) -> str:
    """What goes wrong now: nothing, or `raise` and the like.

    `hold:NAME` waits until the test makes the file `release-NAME`.
    """
    wanted: str = _load("faults.json", {}).get(key, "")
    if wanted.startswith("hold:"):
        name, _, wanted = wanted.removeprefix("hold:").partition(",")
        while not (_folder() / f"release-{name}").exists():
            time.sleep(0.01)
    if wanted == "raise":
        raise RuntimeError(f"{key.split(':')[0]} refused")
    return wanted


def create(inputs: Thing) -> tuple[str, Thing]:
    with _locked():
        world = _load("world.json", {"things": {}, "counts": {}})
        name = inputs["name"]
        world["counts"][name] = world["counts"].get(name, 0) + 1
        id = f"{name}#{world['counts'][name]}"
        thing = {key: inputs[key] for key in INPUTS if key in inputs} | {
            "status": "running",
            "secretOut": f"once-{id}",
        }
        world["things"][id] = thing
        _save(world)
        return id, thing


def read(id: str) -> Thing | None:
    with _locked():
        thing: Thing | None = _load("world.json", {"things": {}})["things"].get(id)
        return thing


def update(id: str, inputs: Thing) -> Thing:
    with _locked():
        world = _load("world.json", {})
        kept = {key: value for key, value in world["things"][id].items() if key not in INPUTS}
        world["things"][id] = {key: inputs[key] for key in INPUTS if key in inputs} | kept
        _save(world)
        thing: Thing = world["things"][id]
        return thing


def delete(id: str) -> None:
    with _locked():
        world = _load("world.json", {"things": {}, "counts": {}})
        world["things"].pop(id, None)
        _save(world)


def _save(world: Any) -> None:
    temporary = _folder() / "world.new"
    temporary.write_text(json.dumps(world))
    temporary.replace(_folder() / "world.json")
