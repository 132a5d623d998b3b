// The plugin "ingress": host names and paths that lead to programs in instances, through nginx.
import { absentJournal } from '../../core/db/absent-journal.ts'
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import { checkTool } from '../../core/process/tool-version.ts'
import { compose } from './compose.ts'
import { manifest, type AcmeConfig } from './manifest.ts'
import { endAll } from './process/nginx.ts'
import { pathsOf } from './process/paths.ts'
import { ingressRoutes } from './routes.ts'

export const plugin = definePlugin({
  manifest,

  async create (deps, config) {
    const { listen, certificates: { acme } } = config
    const { commands, events, log, server } = deps
    const reason = listen.http.length + listen.https.length === 0
      ? 'plugins.ingress.config.listen names no port'
      : deps.network === undefined
        ? 'the plugin networking does not run: guests without a network cannot be reached'
        : deps.instanceCopies === undefined ? 'the plugin instances does not run: there is nobody to be reached' : undefined
    if (reason !== undefined) {
      await endAll(pathsOf(server.dataDir).folder)
      throw new SkipPlugin(reason)
    }
    const both = listen.http.find((port) => listen.https.includes(port))
    if (both !== undefined) throw new Error(`plugins.ingress.config.listen: port ${both} stands in http and in https`)
    requireAcme(acme, listen.http.length > 0)
    const ingresses = compose(deps, config, deps.journal ?? absentJournal(server.hostId))
    return {
      async start (signal) {
        if (acme.directory !== undefined) await checkTool('lego', { commands, log, packages: manifest.hostPackages, signal })
        await ingresses.begin(signal)
        events.on('instance.state', () => { void ingresses.instanceChanged() })
        events.on('instance.deleted', ({ id }) => { void ingresses.instanceDeleted(id) })
      },
      routes: ingressRoutes(ingresses),
      stop: async () => { await ingresses.close(server.stopInstancesOnExit) }
    }
  }
})

/** @throws Error that names the setting that an ACME authority requires */
function requireAcme ({ directory, email, acceptTerms, challenge, dnsProvider }: AcmeConfig, hasHttp: boolean): void {
  if (directory === undefined) return
  const without = (key: string, why: string): never => { throw new Error(`plugins.ingress.config.certificates.acme.${key}: ${why}`) }
  if (email === undefined) without('email', 'is missing, and the account at the directory needs it')
  if (!acceptTerms) without('acceptTerms', 'must be true: nobody else can agree to the terms of the directory')
  if (challenge === 'dns-01' && dnsProvider === undefined) without('dnsProvider', 'is missing, and dns-01 needs it')
  if (challenge === 'http-01' && !hasHttp) without('challenge', 'http-01 needs a port for plain HTTP in plugins.ingress.config.listen.http')
}
