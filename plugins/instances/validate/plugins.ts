// Fields that other plugins serve: without their plugin they are refused, never ignored.
import { PluginDisabled } from '../../../core/errors/common.ts'
import type { HypervisorName } from '../../../core/contracts/hypervisor.ts'
import type { Settings } from '../config.ts'
import type { CreateInstance } from '../schemas.ts'
import type { Sizes } from './sizes.ts'

/** @throws PluginDisabled naming the field and the plugin that it needs */
export function checkPlugins (body: CreateInstance, sizes: Sizes, has: { readonly network: boolean, readonly egress: boolean }): void {
  const wanted: readonly [asked: boolean, pluginId: string, field: string][] = [
    [(body.devices?.length ?? 0) > 0, 'devices', 'devices'],
    [body.gpu?.profile !== undefined, 'devices', 'gpu'],
    [(body.volumes?.length ?? 0) > 0, 'volumes', 'volumes'],
    [!has.network && body.network?.enabled === true, 'networking', 'network.enabled'],
    [!has.network && body.network?.bandwidth_download !== undefined, 'networking', 'network.bandwidth_download'],
    [!has.network && body.network?.bandwidth_upload !== undefined, 'networking', 'network.bandwidth_upload'],
    [!has.egress && body.network?.egress?.enabled === true, 'egress', 'network.egress'],
    [body.disk_io_bps !== undefined, 'resources', 'disk_io_bps'],
    [sizes.hotplugBytes > 0, 'resources', 'hotplug_size']
  ]
  const missing = wanted.find(([asked]) => asked)
  if (missing !== undefined) throw PluginDisabled(missing[1], missing[2])
}

/**
 * The hypervisor to use: the one asked for, else the configured one.
 * @throws PluginDisabled when it is not there
 */
export function chooseHypervisor (asked: HypervisorName | undefined, settings: Settings, available: ReadonlyMap<string, unknown>): HypervisorName {
  const wanted = asked ?? settings.defaults.hypervisor
  if (available.has(wanted)) return wanted
  throw PluginDisabled(`hypervisor-${wanted}`, 'hypervisor')
}
