// Fields that other plugins serve: without their plugin they are refused, never ignored.
import { InvalidRequest, PluginDisabled } from '../../../core/errors/common.ts'
import type { HypervisorDriver } from '../../../core/library/hypervisor.ts'
import type { PluginReports } from '../../../core/plugins/reports.ts'
import { hypervisorAbsent } from '../host/absent-hypervisor.ts'
import type { Settings } from '../config.ts'
import type { InstancePart } from '../contract.ts'
import { FieldUnsupported } from '../errors.ts'
import type { InstanceSpec } from '../model/record.ts'
import type { InstanceRequest } from '../model/request.ts'

/** @throws PluginDisabled naming the field and the plugin that it needs */
export function checkPlugins ({ devices, gpuProfile, network, ports, spec: { diskIoBps, hotplugBytes, volumes = [] } }: InstanceRequest, has: Readonly<Record<'devices' | 'egress' | 'network' | 'ports' | 'resources' | 'volumes', boolean>>): void {
  const wanted: readonly [asked: boolean, pluginId: string, field: string][] = [
    [!has.devices && devices.length > 0, 'devices', 'devices'],
    [!has.devices && gpuProfile !== undefined, 'devices', 'gpu'],
    [!has.ports && ports.length > 0, 'ports', 'ports'],
    [!has.volumes && volumes.length > 0, 'volumes', 'volumes'],
    [!has.network && network.enabled === true, 'networking', 'network.enabled'],
    [!has.network && network.downloadBps !== undefined, 'networking', 'network.bandwidth_download'],
    [!has.network && network.uploadBps !== undefined, 'networking', 'network.bandwidth_upload'],
    [!has.egress && network.mediated !== undefined, 'egress', 'network.egress'],
    [!has.resources && diskIoBps !== undefined, 'resources', 'disk_io_bps'],
    [!has.resources && hotplugBytes !== undefined, 'resources', 'hotplug_size']
  ]
  const missing = wanted.find(([asked]) => asked)
  if (missing !== undefined) throw PluginDisabled(missing[1], missing[2])
}

type Features = NonNullable<HypervisorDriver['features']>

/** Fields of the spec that need a feature of the hypervisor, and are of no part: those have theirs in `InstancePart.needs`. */
const NEEDS: readonly [key: keyof InstanceSpec, field: string, feature: Features[number]][] = [
  ['diskIoBps', 'disk_io_bps', 'disk-io-limit'],
  ['hotplugBytes', 'hotplug_size', 'hotplug-memory']
]

/** Whether a hypervisor can have an instance with these fields; one that is not there can have none, and is told of elsewhere. @throws FieldUnsupported, InvalidRequest naming the field that it cannot serve, or only with less */
export function checkHypervisor (spec: Partial<InstanceSpec>, name: string, { hypervisors, parts }: { readonly hypervisors: ReadonlyMap<string, Pick<HypervisorDriver, 'features' | 'mostVcpus'>>, readonly parts: readonly Pick<InstancePart, 'needs'>[] }): void {
  const driver = hypervisors.get(name)
  if (driver === undefined) return
  const { features = [], mostVcpus = Infinity } = driver
  const ofParts = parts.flatMap(({ needs }) => needs?.fields.map((key) => [key, key, needs.feature] as const) ?? [])
  const missing = [...NEEDS, ...ofParts].find(([key, , feature]) => spec[key] !== undefined && !features.includes(feature))
  if (missing !== undefined) throw FieldUnsupported(missing[1], name)
  if (spec.vcpus !== undefined && spec.vcpus > mostVcpus) throw InvalidRequest(`vcpus: must be at most ${mostVcpus} with the hypervisor ${name}`)
}

/** The fields of the spec that the parts make of the request. @throws what a part throws */
export function wantedOf (request: InstanceRequest, parts: readonly InstancePart[]): Partial<InstanceSpec> {
  return Object.assign({}, ...parts.map((part) => part.wanted?.(request) ?? {}))
}

/**
 * The hypervisor to use: the one asked for, else the configured one.
 * @throws PluginDisabled when it is not there
 */
export function chooseHypervisor (asked: string | undefined, settings: Settings, { hypervisors, plugins }: { readonly hypervisors: ReadonlyMap<string, unknown>, readonly plugins: Pick<PluginReports, 'get'> }): string {
  const wanted = asked ?? settings.defaults.hypervisor
  if (hypervisors.has(wanted)) return wanted
  throw hypervisorAbsent(wanted, 'hypervisor', plugins)
}
