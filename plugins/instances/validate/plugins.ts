// Fields that other plugins serve: without their plugin they are refused, never ignored.
import { PluginDisabled } from '../../../core/errors/common.ts'
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

/** @throws FieldUnsupported naming the field that the hypervisor cannot serve */
export function checkFeatures ({ diskIoBps, hotplugBytes }: Pick<InstanceSpec, 'diskIoBps' | 'hotplugBytes'>, name: string, hypervisors: ReadonlyMap<string, Pick<HypervisorDriver, 'features'>>): void {
  const features: readonly string[] = hypervisors.get(name)?.features ?? []
  if (diskIoBps !== undefined && !features.includes('disk-io-limit')) throw FieldUnsupported('disk_io_bps', name)
  if (hotplugBytes !== undefined && !features.includes('hotplug-memory')) throw FieldUnsupported('hotplug_size', name)
}

/** The fields of the spec that the parts make of the request. @throws FieldUnsupported naming the field that the hypervisor cannot serve, and what a part throws */
export function wantedOf (request: InstanceRequest, parts: readonly InstancePart[], name: string, hypervisors: ReadonlyMap<string, Pick<HypervisorDriver, 'features'>>): Partial<InstanceSpec> {
  const features = hypervisors.get(name)?.features ?? []
  const all = parts.map((part) => {
    const wanted = part.wanted?.(request) ?? {}
    const [field] = Object.keys(wanted)
    if (field !== undefined && part.feature !== undefined && !features.includes(part.feature)) throw FieldUnsupported(field, name)
    return wanted
  })
  return Object.assign({}, ...all)
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
