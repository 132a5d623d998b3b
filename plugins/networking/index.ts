// The networking plugin: a network of their own for guests, in a namespace, with rules that nobody gets around.
import { networkInterfaces } from 'node:os'
import { HostCommandMissing } from '../../core/process/run.ts'
import { checkTool } from '../../core/process/tool-version.ts'
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import type { HostCommands, Logger } from '../../core/contracts/services.ts'
import { manifest, type Deps } from './manifest.ts'
import { missingPrivileges } from './privileges.ts'
import { AddressRepository } from './repository.ts'
import { Networking } from './service.ts'
import { resolveSettings } from './settings.ts'

const TOOLS = [['ip', '-Version'], ['nft', '--version'], ['conntrack', '--version'], ['dnsmasq', '--version'], ['sysctl', '--version']] as const

export const plugin = definePlugin({
  manifest,

  register (registrar, config) {
    registrar.provide('network', ({ log, database, commands, server: { dataDir, hostId } }) => {
      const settings = resolveSettings(config, { dataDir, hostId })
      return new Networking({ settings, commands, hostAddresses, log: log.child({ plugin: manifest.id }), repository: new AddressRepository(database, hostId, settings.cidr) })
    })
  },

  async start (deps, _config, signal) {
    const missing = missingPrivileges()
    if (missing !== undefined) throw new SkipPlugin(missing)
    await checkTools(deps, signal)
    const network = own(deps)
    await network.open()
    deps.events.on('instance.deleted', ({ id }) => {
      network.release(id).catch((error: unknown) => deps.log.error({ err: error, instanceId: id }, 'the address of a deleted instance could not be given back'))
    })
  },

  async stop (deps) {
    await own(deps).close(deps.server.stopInstancesOnExit)
  }
})

function own (deps: Deps): Networking {
  if (deps.network instanceof Networking) return deps.network
  throw new Error('the service "network" is not the one that this plugin made')
}

async function checkTools ({ commands, log }: { commands: HostCommands, log: Logger }, signal: AbortSignal): Promise<void> {
  try {
    await Promise.all(TOOLS.map(async ([file, option]) => await checkTool(file, { commands, log, option, signal })))
  } catch (error) {
    if (HostCommandMissing.is(error)) throw new SkipPlugin(error.message)
    throw error
  }
}

function hostAddresses (): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []).filter(({ family }) => family === 'IPv4').map(({ address }) => address).sort()
}
