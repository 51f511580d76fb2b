"""Provider on Pulumi's SDK for Python, which stores resources as files.

The provider accepts no secrets, supports previews, and has no Handshake. `tests/src/sdk_providers/provider_home.rs` describes
its files.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
import uuid
from pathlib import Path

from pulumi.provider.experimental import provider as sdk
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.server import main
from pulumi.runtime.rpc import UNKNOWN

from failures import busy, invalid
from registration import serve_registered

HOME = Path(os.environ["PEER_HOME"])
SCHEMA = {
    "name": "peerpy",
    "version": "1.0.0",
    "resources": {
        "peerpy:index:Thing": {
            "inputProperties": {
                "v": {"type": "string"},
                "k": {"type": "string", "willReplaceOnChanges": True},
                "secret": {"type": "string", "secret": True},
                "delay": {"type": "number"},
            },
            "properties": {
                "v": {"type": "string"},
                "k": {"type": "string"},
                "secret": {"type": "string", "secret": True},
                "delay": {"type": "number"},
                "out": {"type": "string"},
            },
        }
    },
}
KEPT = ["v", "k", "secret"]


def now() -> float:
    return time.time() * 1000


@contextlib.contextmanager
def noted(call: str, name: str = "", bag=None, preview: bool = False, id: str = ""):
    """Records the call at its end, with the form of the secret instead of its value."""
    begin = now()
    note = {"call": call, "name": name, "id": id, "preview": preview, "secret": how(bag or {}), "pid": os.getpid()}
    yield note
    line = json.dumps(note | {"begin": begin, "end": now()}) + "\n"
    log = os.open(HOME / "calls.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, line.encode())
    os.close(log)


def how(bag) -> str:
    secret = bag.get("secret")
    return "absent" if secret is None else "wrapped" if secret.is_secret else "plain"


def path(id: str) -> Path:
    return HOME / "things" / f"{id}.json"


def keep(id: str, bag) -> None:
    kept = {key: bag[key].value for key in KEPT if key in bag}
    path(id).write_text(json.dumps(kept))


def outputs(bag):
    # The SDK defines a constant for unknown values, but does not convert it: the value arrives as a plain string.
    v = bag["v"].value
    return dict(bag) | {"out": PropertyValue(UNKNOWN if v == UNKNOWN else f"made of {v}")}


class Things(sdk.Provider):
    # Calls that have failed as busy.
    failed = set()

    def fail_once(self, call: str, bag, key: str) -> None:
        """Fails the first of the calls whose property is `busy`."""
        if key in bag and bag[key].value == "busy" and call not in self.failed:
            self.failed.add(call)
            raise busy(f"{call} must wait", 100)

    async def get_schema(self, request):
        return sdk.GetSchemaResponse(json.dumps(SCHEMA))

    async def configure(self, request):
        with noted("Configure"):
            return sdk.ConfigureResponse(supports_preview=True, accept_resources=True, accept_outputs=True)

    async def check(self, request):
        self.fail_once("Check", request.new_inputs, "v")
        if request.new_inputs.get("v") == PropertyValue("bad"):
            raise invalid("the thing is refused", "v", "must be good")
        with noted("Check", request.name, request.new_inputs):
            failures = [] if "v" in request.new_inputs else [sdk.CheckFailure("v", "missing required input v")]
            return sdk.CheckResponse(request.new_inputs, failures)

    async def diff(self, request):
        with noted("Diff", request.name, request.new_inputs, id=request.resource_id):
            olds, news = request.old_state, request.new_inputs
            changed = [key for key in KEPT if olds.get(key) != news.get(key) and key not in request.ignore_changes]
            kind = sdk.PropertyDiffKind
            return sdk.DiffResponse(
                changes=bool(changed),
                diffs=changed,
                replaces=["k"] if "k" in changed else [],
                detailed_diff={
                    key: sdk.PropertyDiff(kind.UPDATE_REPLACE if key == "k" else kind.UPDATE, input_diff=False)
                    for key in changed
                },
            )

    async def create(self, request):
        with noted("Create", request.name, request.properties, request.preview) as note:
            if request.preview:
                return sdk.CreateResponse("", outputs(request.properties))
            await asyncio.sleep(request.properties.get("delay", PropertyValue(0.0)).value / 1000)
            id = note["id"] = f"{request.name}-{uuid.uuid4().hex[:8]}"
            keep(id, request.properties)
            return sdk.CreateResponse(id, outputs(request.properties))

    async def read(self, request):
        with noted("Read", request.name, request.inputs, id=request.resource_id):
            if not path(request.resource_id).exists():
                return sdk.ReadResponse()
            live = {key: PropertyValue(value) for key, value in json.loads(path(request.resource_id).read_text()).items()}
            inputs = dict(request.inputs) | live
            return sdk.ReadResponse(request.resource_id, outputs(inputs), inputs)

    async def update(self, request):
        with noted("Update", request.name, request.news, request.preview, request.resource_id):
            if not request.preview:
                keep(request.resource_id, request.news)
            return sdk.UpdateResponse(outputs(request.news))

    async def delete(self, request):
        self.fail_once("Delete", request.properties, "k")
        with noted("Delete", request.name, request.properties, id=request.resource_id):
            path(request.resource_id).unlink()


if "SC_PLUGIN_HOST" in os.environ:
    asyncio.run(serve_registered("peerpy", "1.0.0", Things()))
else:
    main(sys.argv[1:], "1.0.0", Things())
