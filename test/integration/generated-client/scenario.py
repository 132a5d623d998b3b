"""A day with a client that was generated from the server's own document: each answer must be of the status and the model that the document gives it.

One line of JSON on standard output for each step. Takes BERTH_URL, BERTH_KEY and IMAGE from the environment; `berth_client` is the generated package.
"""
import json
import os

from berth_client import AuthenticatedClient
from berth_client.api.events import get_events_snapshot
from berth_client.api.images import get_image, list_images, tag_image
from berth_client.api.instances import create_instance, delete_instance, get_instance, get_instance_stats, list_instances, restore_instance, standby_instance, stop_instance, update_instance, wait_for_instance
from berth_client.api.keys import create_key, get_whoami, list_keys, revoke_key
from berth_client.api.server import get_capabilities, get_health
from berth_client.api.snapshots import create_instance_snapshot, delete_snapshot, fork_snapshot, list_snapshots
from berth_client.api.volumes import create_volume, delete_volume, get_volume, list_volumes
from berth_client.models import *

client = AuthenticatedClient(base_url=os.environ["BERTH_URL"], token=os.environ["BERTH_KEY"], timeout=300, raise_on_unexpected_status=True)
IMAGE = os.environ["IMAGE"]


def step(operation, status, /, *args, **fields):
    """Calls an operation; its answer is read by the generated code, and written back it must be what came."""
    answer = operation.sync_detailed(*args, client=client, **fields)
    name = operation.__name__.rsplit(".", 1)[1]
    assert answer.status_code == status, f"{name} answered {answer.status_code}: {answer.content[:500]}"
    if answer.content:
        read = [item.to_dict() for item in answer.parsed] if isinstance(answer.parsed, list) else answer.parsed.to_dict()
        assert same(read, json.loads(answer.content)), f"{name}: {answer.content[:2000]} was read as {read}"
    print(json.dumps({"step": name, "status": answer.status_code}), flush=True)
    return answer.parsed


def same(read, sent):
    """Python writes times in its own way."""
    if isinstance(sent, dict):
        return read.keys() == sent.keys() and all(same(read[key], sent[key]) for key in sent)
    if isinstance(sent, list):
        return len(read) == len(sent) and all(map(same, read, sent))
    return read == sent or (isinstance(sent, str) and isinstance(read, str) and sent.endswith("Z") and read[:19] == sent[:19])


step(get_health, 200)
step(get_capabilities, 200)
assert step(get_whoami, 200).scopes == ["*"]
assert IMAGE in [image.name for image in step(list_images, 200)]
assert step(get_image, 200, IMAGE).status == "ready"
step(tag_image, 201, IMAGE, body=TagImageBody.from_dict({"target": IMAGE.replace(":latest", ":copy")}))

volume = step(create_volume, 201, body=CreateVolume(name="data", size_gb=0.125))
web = step(create_instance, 201, body=CreateInstance.from_dict({
    "name": "web", "image": IMAGE, "size": "128MB", "vcpus": 1, "overlay_size": "64MB", "entrypoint": [], "cmd": ["/bin/sleep", "1000000"], "tags": {"team": "a b", "env": "test"},
    "volumes": [{"volume_id": volume.id, "mount_path": "/data"}],
}))
step(wait_for_instance, 200, web.id, state="Running", timeout="60s")
# No tags: the generator writes `team=a` for what the document calls a deepObject, `tags[team]=a`.
assert [instance.id for instance in step(list_instances, 200, name="web", sort=ListInstancesSort("-created_at"), limit=5)] == [web.id]
assert step(list_instances, 200, state=ListInstancesState("Paused")) == []
assert step(get_volume, 200, "data").attachments[0].instance_id == web.id
step(get_instance_stats, 200, web.id)
step(update_instance, 200, web.id, body=UpdateInstance.from_dict({"ttl": "1h"}))
step(create_instance, 409, body=CreateInstance.from_dict({"name": "web", "image": IMAGE}))
step(create_instance, 400, body=CreateInstance.from_dict({"name": "Not a name", "image": IMAGE}))
step(update_instance, 412, web.id, body=UpdateInstance.from_dict({"ttl": "2h"}), if_match='"of yesterday"')
assert step(standby_instance, 200, web.id).state == "Standby"
assert step(restore_instance, 200, web.id).state == "Running"
step(stop_instance, 200, web.id)

snapshot = step(create_instance_snapshot, 201, web.id, body=CreateSnapshot.from_dict({"kind": "Stopped", "name": "evening"}))
assert [each.name for each in step(list_snapshots, 200, source_instance_id="web", name="evening")] == ["evening"]
step(fork_snapshot, 400, snapshot.id, body=ForkSnapshot(name="Not a name"))
step(delete_snapshot, 204, snapshot.id)
key = step(create_key, 201, body=CreateKey(name="reader", scopes=["instance:read"], expires_in="1h"))
assert [each.id for each in step(list_keys, 200, name="reader", status=ListKeysStatus("active"))] == [key.id]
step(revoke_key, 204, key.id)
step(delete_instance, 204, web.id)
step(get_instance, 404, web.id)
step(delete_volume, 204, volume.id)
assert step(list_volumes, 200) == []
step(get_events_snapshot, 200)
