// The plugin "egress": the mediated way out, with credentials that a VM uses without having their values.
import { readFile } from 'node:fs/promises'
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import { HTTP_PORT, HTTPS_PORT } from '../../proxy/contract/ports.ts'
import { rangeList } from '../../proxy/contract/ranges.ts'
import { AuthorityMaker } from './authority.ts'
import { ControlClient } from './control/client.ts'
import { manifest, type EgressConfig, type Deps } from './manifest.ts'
import { createMetrics } from './metrics.ts'
import { ExternalProxy } from './process/external-proxy.ts'
import { ManagedProxy } from './process/managed-proxy.ts'
import { pathsOf } from './process/paths.ts'
import { EgressRepository } from './repository.ts'
import { Egress } from './service.ts'

const DNS_PORT = 53

function compose (deps: Deps, network: NonNullable<Deps['network']>, config: EgressConfig): Egress {
  const { database, commands, secrets, tracing, server: { dataDir, hostId } } = deps
  const log = deps.log.child({ plugin: manifest.id })
  const paths = pathsOf(dataDir)
  const client = new ControlClient(config.proxy.controlSocket ?? paths.controlSocket)
  const metrics = createMetrics(deps.metrics, () => service)
  const proxy = config.proxy.manage
    ? new ManagedProxy({ config, dataDir, paths, network, commands, processes: deps.processes, client, log, onStart: () => { metrics.starts.inc() } })
    : new ExternalProxy({ network, commands, log })
  const service = new Egress({
    repository: new EgressRepository(database, hostId),
    secrets,
    network,
    config,
    tracing,
    proxy,
    client,
    authority: new AuthorityMaker(commands),
    log,
    onPush: (outcome) => { metrics.pushes.inc({ outcome }) }
  })
  return service
}

export const plugin = definePlugin({
  manifest,

  create (deps, config) {
    const { network, server } = deps
    if (network === undefined) throw new SkipPlugin('the plugin networking does not run: without a network for guests there is no way out to mediate')
    if (!config.proxy.manage && config.proxy.controlSocket === undefined) throw new Error('plugins.egress.config.proxy.controlSocket: is needed when manage is false')
    const egress = compose(deps, network, config)
    return {
      services: { egress },
      async start () {
        await checkPlaces(config)
        await egress.open()
      },
      stop: async () => { await egress.close(server.stopInstancesOnExit) }
    }
  }
})

/** Checks settings that the proxy would refuse only at its start, which may come much later. @throws Error that names the field */
async function checkPlaces ({ ports, roots, allowPrivate, deny }: EgressConfig): Promise<void> {
  inField('ports', () => checkPorts(ports))
  for (const [field, ranges] of Object.entries({ allowPrivate, deny })) {
    for (const [index, range] of ranges.entries()) inField(`${field}.${index}`, () => rangeList([range]))
  }
  for (const [index, path] of roots.entries()) {
    const text = await readFile(path, 'utf8').catch((error: unknown) => { throw new Error(`plugins.egress.config.roots.${index}: ${path} cannot be read: ${messageOf(error)}`, { cause: error }) })
    inField(`roots.${index}`, () => { if (!text.includes('-----BEGIN CERTIFICATE-----')) throw new Error(`${path} holds no certificate in PEM`) })
  }
}

function checkPorts ({ http, https }: EgressConfig['ports']): void {
  for (const [kind, first, ports] of [['http', HTTP_PORT, http], ['https', HTTPS_PORT, https]] as const) {
    if (!ports.includes(first)) throw new Error(`${kind} must have ${first}: guests reach that one through the proxy alone`)
  }
  const twice = http.find((port) => https.includes(port))
  if (twice !== undefined) throw new Error(`${twice} must be in http or in https, and not in both`)
  if ([...http, ...https].includes(DNS_PORT)) throw new Error(`${DNS_PORT} is where guests ask for names, and cannot be one of them`)
}

function inField (field: string, check: () => void): void {
  try {
    check()
  } catch (error) {
    throw new Error(`plugins.egress.config.${field}: ${messageOf(error)}`, { cause: error })
  }
}

function messageOf (error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
