"""Calls every method of the official Python SDK that this server serves, and checks each answer against the SDK's own models.

One line of JSON on standard output for each call: {"call", "error"}; `error` is null when the answer is right.
Takes BERTH_URL, BERTH_KEY, IMAGE (a shell that is ready) and TARGET (host:port of a registry on plain HTTP) from the environment.
"""
import functools
import gzip
import inspect
import io
import json
import os
import sys
import tarfile
import tempfile
import traceback
from pathlib import Path

import hypeman.resources
from hypeman import APIStatusError, Hypeman
from hypeman._models import BaseModel
from hypeman._resource import SyncAPIResource
from hypeman.lib.cp import cp_from_instance, cp_to_instance
from hypeman.lib.exec import exec as run_in

client = Hypeman(base_url=os.environ["BERTH_URL"], api_key=os.environ["BERTH_KEY"], max_retries=0, timeout=300)
IMAGE = os.environ["IMAGE"]
SMALL = {"image": IMAGE, "size": "128MB", "vcpus": 1, "overlay_size": "256MB"}


ALL, ANSWERED, REFUSED = set(), set(), set()
METHODS = 63
# A host without a card to give away can only refuse these here.
REFUSED_ONLY = {"DevicesResource.create", "DevicesResource.delete", "DevicesResource.retrieve"}


def watch():
    """Every method of the SDK notes that it was called."""
    for resource in SyncAPIResource.__subclasses__():
        for name, method in list(vars(resource).items()):
            if inspect.isfunction(method) and not name.startswith("_"):
                ALL.add(method.__qualname__)
                setattr(resource, name, watched(method))


def watched(method):
    @functools.wraps(method)
    def run(*given, **named):
        try:
            answer = method(*given, **named)
        except APIStatusError:
            REFUSED.add(method.__qualname__)
            raise
        ANSWERED.add(method.__qualname__)
        return answer
    return run


def check(answer):
    """Raises when a field that the model requires is missing, or one is of another type."""
    if isinstance(answer, list):
        for item in answer:
            check(item)
    elif isinstance(answer, BaseModel):
        type(answer).model_validate(answer.to_dict(mode="json"))
    return answer


def call(name, work, expect=None, status=None):
    """Runs one call; `expect` says of the answer whether it is what was asked for, `status` that it is refused."""
    error, answer = None, None
    try:
        answer = check(work())
        if status is not None:
            error = f"answered instead of {status}"
        elif expect is not None and not expect(answer):
            error = f"not what was asked for: {answer!r}"[:500]
    except APIStatusError as refused:
        if refused.status_code != status:
            error = str(refused)[:500]
    except Exception:  # whatever a client's code makes of an answer
        error = traceback.format_exc(limit=-3)[-800:]
    print(json.dumps({"call": name, "error": error}), flush=True)
    return answer


def archive(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return gzip.compress(buffer.getvalue())


def server():
    call("health.check", lambda: client.health.check(), lambda a: a.status == "ok")
    call("capabilities.get", lambda: client.capabilities.get(), lambda a: a.network.model == "bridge" and "instances" in a.features)
    call("resources.get", lambda: client.resources.get())


def images():
    call("images.get", lambda: client.images.get(IMAGE), lambda a: a.status == "ready")
    call("images.list", lambda: client.images.list(), lambda a: any(image.name == IMAGE for image in a))
    call("images.create", lambda: client.images.create(name=IMAGE, tags={"team": "a"}))
    tagged = call("images.tag", lambda: client.images.tag(IMAGE, target="localhost/py/tagged:v1"))
    call("images.delete", lambda: client.images.delete(tagged.name if tagged else "localhost/py/tagged:v1"))
    call("images.get of none", lambda: client.images.get("localhost/py/tagged:v1"), status=404)


def volumes():
    volume = call("volumes.create", lambda: client.volumes.create(name="py-data", size_gb=1, tags={"team": "a"}))
    call("volumes.get", lambda: client.volumes.get(volume.id), lambda a: a.name == "py-data")
    call("volumes.list", lambda: client.volumes.list(tags={"team": "a"}), lambda a: [v.id for v in a] == [volume.id])
    filled = call("volumes.create_from_archive", lambda: client.volumes.create_from_archive(archive({"file": "text"}), name="py-filled", size_gb=1))
    call("volumes.delete", lambda: client.volumes.delete(filled.id))
    return volume


def instance_life(volume):
    made = call("instances.create", lambda: client.instances.create(name="py-web", entrypoint=["/bin/sh", "-c"], cmd=["echo ready; while true; do sleep 1; done"], tags={"team": "a"}, **SMALL))
    call("instances.wait", lambda: client.instances.wait(made.id, state="Running", api_timeout="120s"), lambda a: a.state == "Running")
    call("instances.get", lambda: client.instances.get(made.id[:12]), lambda a: a.id == made.id)
    call("instances.list", lambda: client.instances.list(state="Running", tags={"team": "a"}), lambda a: [i.id for i in a] == [made.id])
    call("instances.logs", lambda: [next(iter(client.instances.logs(made.id, follow=True)))], lambda a: a == ["ready"])
    call("instances.stat", lambda: client.instances.stat(made.id, path="/bin/busybox"), lambda a: a.exists and a.is_file)
    call("instances.stats", lambda: client.instances.stats(made.id), lambda a: a.instance_id == made.id)
    call("lib.exec", lambda: run_in(client, made.id, ["/bin/sh", "-c", "echo hello; exit 3"]), lambda a: (a.output, a.exit_code) == (b"hello\n", 3))
    copies(made.id)
    call("instances.update", lambda: client.instances.update(made.id, ttl="2h"), lambda a: a.expires_at is not None)
    call("auto_standby.status", lambda: client.instances.auto_standby.status(made.id), lambda a: not a.configured)
    call("instances.update of auto standby", lambda: client.instances.update(made.id, auto_standby={"enabled": True, "idle_timeout": "30m"}))
    call("auto_standby.hold", lambda: client.instances.auto_standby.hold(made.id))
    call("resources.reclaim_memory", lambda: client.resources.reclaim_memory(reclaim_bytes=2**20, dry_run=True), lambda a: a.requested_reclaim_bytes == 2**20)
    call("instances.volumes.attach", lambda: client.instances.volumes.attach(volume.id, id=made.id, mount_path="/data"), lambda a: a.volumes[0].mount_path == "/data")
    call("instances.volumes.detach", lambda: client.instances.volumes.detach(volume.id, id=made.id), lambda a: not a.volumes)
    call("volumes.delete of an empty one", lambda: client.volumes.delete(volume.id))
    snapshots(made.id)
    call("instances.standby", lambda: client.instances.standby(made.id), lambda a: a.state == "Standby" and a.has_snapshot)
    call("instances.fork", lambda: client.instances.fork(made.id, name="py-fork", target_state="Standby"), lambda a: a.name == "py-fork" and a.state == "Standby")
    call("instances.restore", lambda: client.instances.restore(made.id), lambda a: a.state in ("Running", "Initializing"))
    call("instances.stop", lambda: client.instances.stop(made.id), lambda a: a.state == "Stopped")
    call("instances.start", lambda: client.instances.start(made.id, cmd=["exit 7"]))
    call("instances.wait for the end", lambda: client.instances.wait(made.id, state="Stopped", api_timeout="120s"), lambda a: a.state == "Stopped")
    call("instances.get of a stopped one", lambda: client.instances.get("py-web"), lambda a: a.exit_code == 7)
    for name in ("py-web", "py-fork"):
        call(f"instances.delete {name}", lambda: client.instances.delete(name))
    call("instances.get of none", lambda: client.instances.get(made.id), status=404)


def copies(instance):
    with tempfile.TemporaryDirectory() as folder:
        there, back = Path(folder, "there.json"), Path(folder, "back")
        there.write_text('{"type":"end","final":true}')
        call("lib.cp to", lambda: cp_to_instance(client, instance, str(there), "/tmp/there.json"))
        call("lib.cp from", lambda: cp_from_instance(client, instance, "/tmp/there.json", str(back)))
        call("lib.cp of JSON", lambda: Path(back, "there.json").read_text(), lambda a: a == there.read_text())


def snapshots(instance):
    made = call("instances.snapshots.create", lambda: client.instances.snapshots.create(instance, kind="Standby", name="py-first"))
    call("snapshots.get", lambda: client.snapshots.get(made.id), lambda a: a.name == "py-first")
    call("snapshots.list", lambda: client.snapshots.list(source_instance_id=instance), lambda a: [s.id for s in a] == [made.id])
    fork = call("snapshots.fork", lambda: client.snapshots.fork(made.id, name="py-copy", target_state="Standby"), lambda a: a.state == "Standby")
    call("instances.delete of a copy", lambda: client.instances.delete(fork.id))
    call("instances.standby for its snapshot", lambda: client.instances.standby(instance))
    call("instances.snapshots.restore", lambda: client.instances.snapshots.restore(made.id, id=instance, target_state="Running"), lambda a: a.state in ("Running", "Initializing"))
    call("instances.wait after it", lambda: client.instances.wait(instance, state="Running", api_timeout="120s"), lambda a: a.state == "Running")
    call("snapshots.delete", lambda: client.snapshots.delete(made.id))
    call("snapshot_schedule.update", lambda: client.instances.snapshot_schedule.update(instance, interval="1h", retention={"max_count": 1}))
    call("snapshot_schedule.get", lambda: client.instances.snapshot_schedule.get(instance), lambda a: a.instance_id == instance)
    call("snapshot_schedule.delete", lambda: client.instances.snapshot_schedule.delete(instance))


def ingresses():
    rule = {"match": {"hostname": "{instance}.example.com"}, "target": {"instance": "{instance}", "port": 8080}}
    made = call("ingresses.create", lambda: client.ingresses.create(name="py-site", rules=[rule], tags={"team": "a"}), lambda a: a.rules[0].match.hostname == "{instance}.example.com" and a.tags == {"team": "a"})
    call("ingresses.list", lambda: client.ingresses.list(tags={"team": "a"}), lambda a: [i.id for i in a] == [made.id])
    call("ingresses.list of none", lambda: client.ingresses.list(tags={"team": "b"}), lambda a: a == [])
    call("ingresses.get", lambda: client.ingresses.get("py-site"), lambda a: a.id == made.id)
    call("ingresses.delete", lambda: client.ingresses.delete(made.id))
    call("ingresses.get of none", lambda: client.ingresses.get(made.id), status=404)


def builds():
    builder = call("builders.create", lambda: client.builders.create(name="Py", disk_size_gb=1))
    call("builders.get", lambda: client.builders.get(builder.id), lambda a: a.name == "Py")
    call("builders.list", lambda: client.builders.list(), lambda a: [b.id for b in a] == [builder.id])
    build = call("builds.create", lambda: client.builds.create(source=("source.tar.gz", archive({"Dockerfile": "FROM localhost/none\n"})), cpus=1, tags='{"team":"a"}'))
    call("builds.get", lambda: client.builds.get(build.id), lambda a: a.id == build.id)
    call("builds.list", lambda: client.builds.list(tags={"team": "a"}), lambda a: [b.id for b in a] == [build.id])
    call("builds.events", lambda: [next(iter(client.builds.events(build.id, follow=True)))], lambda a: a[0].status == "queued")
    call("builds.cancel", lambda: client.builds.cancel(build.id))
    call("builds.get of a cancelled one", lambda: client.builds.get(build.id), lambda a: a.status == "cancelled")
    call("builders.prune", lambda: client.builders.prune(builder.id), lambda a: a.status == "pruning")
    while client.builders.get(builder.id).status == "pruning":
        pass
    call("builders.delete", lambda: client.builders.delete(builder.id))


def pushes():
    push = call("pushes.create", lambda: client.pushes.create(image=IMAGE, target=f"{os.environ['TARGET']}/py/app:1", insecure=True))
    call("pushes.list", lambda: client.pushes.list(), lambda a: [p.id for p in a] == [push.id])
    while (state := client.pushes.get(push.id)).status in ("queued", "pushing"):
        pass
    call("pushes.get", lambda: client.pushes.get(push.id), lambda a: state.status == "pushed")


def devices():
    call("devices.list_available", lambda: client.devices.list_available())
    call("devices.list", lambda: client.devices.list(), lambda a: a == [])
    call("devices.create of none", lambda: client.devices.create(pci_address="ffff:ff:1f.7"), status=404)
    call("devices.retrieve of none", lambda: client.devices.retrieve("none"), status=404)
    call("devices.delete of none", lambda: client.devices.delete("none"), status=404)


watch()
server()
images()
instance_life(volumes())
ingresses()
builds()
pushes()
devices()
call("every method", lambda: sorted(ALL - ANSWERED), lambda a: len(ALL) == METHODS and set(a) == REFUSED_ONLY <= REFUSED)
sys.exit(0)
