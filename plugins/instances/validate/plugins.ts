// Fields that other plugins serve: without their plugin they are refused, never ignored.
import { PluginDisabled } from '../../../core/errors/common.ts'
import type { HypervisorDriver } from '../../../core/library/hypervisor.ts'
import { parseSize } from '../../../core/units.ts'
import type { Settings } from '../config.ts'
import type { InstancePart } from '../contract.ts'
import { FieldUnsupported } from '../errors.ts'
import type { InstanceSpec } from '../record.ts'
import type { CreateInstance } from '../schemas.ts'
import type { Sizes } from './sizes.ts'

/** @throws PluginDisabled naming the field and the plugin that it needs */
export function checkPlugins (body: CreateInstance, sizes: Sizes, has: Readonly<Record<'devices' | 'egress' | 'network' | 'ports' | 'resources' | 'volumes', boolean>>): void {
  const wanted: readonly [asked: boolean, pluginId: string, field: string][] = [
    [!has.devices && (body.devices?.length ?? 0) > 0, 'devices', 'devices'],
    [!has.devices && body.gpu?.profile !== undefined, 'devices', 'gpu'],
    [!has.ports && (body.ports?.length ?? 0) > 0, 'ports', 'ports'],
    [!has.volumes && (body.volumes?.length ?? 0) > 0, 'volumes', 'volumes'],
    [!has.network && body.network?.enabled === true, 'networking', 'network.enabled'],
    [!has.network && body.network?.bandwidth_download !== undefined, 'networking', 'network.bandwidth_download'],
    [!has.network && body.network?.bandwidth_upload !== undefined, 'networking', 'network.bandwidth_upload'],
    [!has.egress && body.network?.egress?.enabled === true, 'egress', 'network.egress'],
    [!has.resources && body.disk_io_bps !== undefined, 'resources', 'disk_io_bps'],
    [!has.resources && sizes.hotplugBytes > 0, 'resources', 'hotplug_size']
  ]
  const missing = wanted.find(([asked]) => asked)
  if (missing !== undefined) throw PluginDisabled(missing[1], missing[2])
}

/** @throws FieldUnsupported naming the field that the hypervisor can do nothing with */
export function checkFeatures (body: CreateInstance, name: string, hypervisors: ReadonlyMap<string, Pick<HypervisorDriver, 'features'>>): void {
  const features: readonly string[] = hypervisors.get(name)?.features ?? []
  if (body.disk_io_bps !== undefined && !features.includes('disk-io-limit')) throw FieldUnsupported('disk_io_bps', name)
  if (body.hotplug_size !== undefined && parseSize(body.hotplug_size) !== 0 && !features.includes('hotplug-memory')) throw FieldUnsupported('hotplug_size', name)
}

/** What is asked of the parts of an instance. @throws FieldUnsupported naming the field that the hypervisor can do nothing with, and what a part has to say */
export function wantedOf (body: CreateInstance, parts: readonly InstancePart[], name: string, hypervisors: ReadonlyMap<string, Pick<HypervisorDriver, 'features'>>): Partial<InstanceSpec> {
  const features = hypervisors.get(name)?.features ?? []
  const all = parts.map((part) => {
    const wanted = part.wanted?.(body) ?? {}
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
export function chooseHypervisor (asked: string | undefined, settings: Settings, available: ReadonlyMap<string, unknown>): string {
  const wanted = asked ?? settings.defaults.hypervisor
  if (available.has(wanted)) return wanted
  throw PluginDisabled(`hypervisor-${wanted}`, 'hypervisor')
}
