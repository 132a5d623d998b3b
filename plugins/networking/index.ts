// The networking plugin: a separate network for guests, in a namespace, with firewall rules that no guest can bypass.
import { HostCommandMissing } from '../../core/process/run.ts'
import { checkTool } from '../../core/process/tool-version.ts'
import { reportOf } from '../../core/plugins/config-report.ts'
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import type { HostCommands, Logger } from '../../core/contracts/services.ts'
import { ownV4 } from '../../proxy/contract/own-addresses.ts'
import { manifest } from './manifest.ts'
import { missingPrivileges } from './privileges.ts'
import { AddressRepository } from './repository.ts'
import { Networking } from './service.ts'
import { resolveSettings } from './settings.ts'

const TOOLS = ['ip', 'nft', 'conntrack', 'dnsmasq', 'sysctl'] as const

export const plugin = definePlugin({
  manifest,
  check: async (config) => await reportOf(() => resolveSettings(config, { dataDir: '', hostId: '' })),

  create ({ log, database, events, commands, processes, server: { dataDir, hostId, stopInstancesOnExit } }, config) {
    const missing = missingPrivileges()
    if (missing !== undefined) throw new SkipPlugin(missing)
    const settings = resolveSettings(config, { dataDir, hostId })
    const network = new Networking({ settings, commands, processes, hostAddresses: () => ownV4(), log: log.child({ plugin: manifest.id }), repository: new AddressRepository(database, hostId, settings.cidr) })
    return {
      services: { network },
      async start (signal) {
        await checkTools({ commands, log }, signal)
        await network.open()
        events.on('instance.deleted', ({ id }) => {
          network.release(id).catch((error: unknown) => log.error({ err: error, instanceId: id }, 'the address of a deleted instance could not be given back'))
        })
      },
      stop: async () => { await network.close(stopInstancesOnExit) }
    }
  }
})

async function checkTools ({ commands, log }: { commands: HostCommands, log: Logger }, signal: AbortSignal): Promise<void> {
  try {
    await Promise.all(TOOLS.map(async (file) => await checkTool(file, { commands, log, packages: manifest.hostPackages, signal })))
  } catch (error) {
    if (HostCommandMissing.is(error)) throw new SkipPlugin(error.message)
    throw error
  }
}
