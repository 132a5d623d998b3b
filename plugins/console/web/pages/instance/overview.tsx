// What an instance is, and what it uses over the last minutes.
import { useEffect } from 'preact/hooks'
import type { Instance } from '../../api/types.ts'
import { bytes } from '../../parts/format.ts'
import { Graph } from '../../parts/graph.tsx'
import { Tags } from '../../parts/tags.tsx'
import { Time } from '../../parts/time.tsx'
import { samplesOf, watchSamples } from '../../state/samples.ts'

export function Overview ({ instance }: { readonly instance: Instance }) {
  const { id, state, network } = instance
  const isOn = state === 'Running'
  useEffect(() => isOn ? watchSamples(id) : undefined, [id, isOn])
  const samples = samplesOf(id).value
  const times = samples.map(({ at }) => at / 1000)
  return (
    <>
      {isOn && <div class='graphs'>
        <Graph title='CPU' times={times} lines={[{ label: 'processors', values: samples.map(({ cpu }) => cpu) }]} format={(value) => value.toFixed(2)} />
        <Graph title='Memory' times={times} lines={[{ label: 'in use', values: samples.map(({ memory }) => memory) }]} format={bytes} />
        <Graph title='Network' times={times} lines={[{ label: 'received', values: samples.map(({ received }) => received) }, { label: 'sent', values: samples.map(({ sent }) => sent) }]} format={(value) => `${bytes(value)}/s`} />
               </div>}
      <dl class='facts'>
        <dt>Id</dt><dd><code>{id}</code></dd>
        <dt>Image</dt><dd>{instance.image}</dd>
        <dt>Size</dt><dd>{instance.vcpus} vCPU, {instance.size} memory, {instance.overlay_size} disk</dd>
        <dt>Hypervisor</dt><dd>{instance.hypervisor}</dd>
        <dt>Network</dt><dd>{network.enabled ? <>{network.ip ?? 'no address now'} <span class='quiet'>{network.mac}</span>{network.bandwidth_download !== undefined && `, ${network.bandwidth_download} down`}{network.bandwidth_upload !== undefined && `, ${network.bandwidth_upload} up`}</> : 'none'}</dd>
        <dt>Created</dt><dd><Time at={instance.created_at} /></dd>
        <dt>Started</dt><dd><Time at={instance.started_at} /></dd>
        {instance.stopped_at != null && <><dt>Stopped</dt><dd><Time at={instance.stopped_at} /></dd></>}
        {instance.exit_message !== undefined && <><dt>Exit</dt><dd>{instance.exit_code} {instance.exit_message}</dd></>}
        {instance.expires_at !== null && <><dt>Expires</dt><dd><Time at={instance.expires_at} /></dd></>}
        {instance.health_status !== undefined && <><dt>Health</dt><dd>{instance.health_status.status} {instance.health_status.last_error}</dd></>}
        {instance.volumes.length > 0 && <><dt>Volumes</dt><dd>{instance.volumes.map(({ volume_id: volume, mount_path: place, readonly }) => <div key={place}><code>{volume}</code> at {place}{readonly === true && ', read-only'}</div>)}</dd></>}
        {Object.keys(instance.tags ?? {}).length > 0 && <><dt>Tags</dt><dd><Tags tags={instance.tags} /></dd></>}
        {Object.keys(instance.env ?? {}).length > 0 && <><dt>Environment</dt><dd>{Object.entries(instance.env ?? {}).map(([name, value]) => <div key={name}><code>{name}={value}</code></div>)}</dd></>}
      </dl>
    </>
  )
}
