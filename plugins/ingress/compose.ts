// Puts the parts of the plugin together.
import { sizeBytes } from '../../core/config/quantities.ts'
import { Acme } from './certificates/acme.ts'
import { Authority } from './certificates/authority.ts'
import { Certificates } from './certificates/certificates.ts'
import { Lego } from './certificates/lego.ts'
import { OwnFiles } from './certificates/own-files.ts'
import { KeptAnswers } from './decide/kept.ts'
import { CallLeases } from './leases.ts'
import type { Journal } from '../../core/db/changes.ts'
import { manifest, type IngressConfig, type Deps } from './manifest.ts'
import { createIngressMetrics } from './metrics.ts'
import { Nginx } from './process/nginx.ts'
import { pathsOf } from './process/paths.ts'
import { uidOf } from './process/plan.ts'
import { trafficOf } from './process/status.ts'
import { IngressRepository } from './repository.ts'
import { RequestLogs } from './requests.ts'
import { Ingresses } from './service.ts'
import { Targets } from './targets.ts'

export type IngressDeps = Pick<Deps, 'log' | 'database' | 'commands' | 'metrics' | 'network' | 'secrets' | 'leases' | 'waking' | 'jobs' | 'processes'> & {
  readonly instanceCopies: Pick<NonNullable<Deps['instanceCopies']>, 'find'> | undefined
  readonly server: Pick<Deps['server'], 'dataDir' | 'hostId'>
}

export function compose (deps: IngressDeps, config: IngressConfig, journal?: Journal): Ingresses {
  const { database, commands, network, secrets, instanceCopies, leases: allLeases, waking, server: { dataDir, hostId } } = deps
  if (network === undefined) throw new Error('there is no network')
  if (instanceCopies === undefined || allLeases === undefined || waking === undefined) throw new Error('there are no instances')
  const log = deps.log.child({ plugin: manifest.id })
  const paths = pathsOf(dataDir)
  const uid = uidOf(dataDir)
  const authority = new Authority(paths.keys, commands)
  const metrics = createIngressMetrics(deps.metrics, {
    isUp: () => nginx.problem === undefined, ingresses: () => ingresses.count, traffic: async () => await trafficOf(paths.run), firstEnd: () => certificates.firstEnd
  })
  const leases = new CallLeases(allLeases)
  const nginx = new Nginx({ config, uid, paths, network, commands, processes: deps.processes, log, onStart: () => { metrics.started() } })
  const certificates: Certificates = new Certificates({
    folder: paths.certificates,
    openHosts: paths.openHosts,
    uid,
    log,
    issue: async (host) => await authority.issue(host),
    files: new OwnFiles({ files: config.certificates.files, log }),
    acme: acmeOf(),
    onOpenHosts: async () => await nginx.reload()
  })
  function acmeOf (): Acme | undefined {
    const { acme } = config.certificates
    const { directory, challenge, hosts } = acme
    if (directory === undefined) return undefined
    return new Acme({
      lego: new Lego({ config: acme, directory, folder: paths.acme, challenges: paths.challenges, tokens: paths.tokens, commands }),
      queue: deps.jobs.queue('ingress certificates', { concurrency: 1 }),
      folder: paths.acme,
      source: `acme ${directory}`,
      challenge,
      hosts,
      log,
      onOutcome: (outcome) => {
        metrics.asked(outcome)
        certificates.look()
      }
    })
  }
  const ingresses: Ingresses = new Ingresses({
    repository: new IngressRepository(database, hostId, journal),
    targets: new Targets({ copies: instanceCopies, network, waking, leases }),
    secrets,
    ports: config.listen,
    uid,
    paths,
    nginx,
    certificates,
    kept: new KeptAnswers(paths.kept),
    requests: new RequestLogs(paths.requests, sizeBytes(config.log.maxFileSize)),
    authority,
    leases,
    metrics,
    log
  })
  return ingresses
}
