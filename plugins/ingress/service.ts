// The ingresses of this host: the functions of the routes, and the answers when nginx asks where a request goes.
import { createId } from '@paralleldrive/cuid2'
import type { Logger, Secrets } from '../../core/contracts/services.ts'
import { createLine } from '../../core/db/line.ts'
import { lookup } from '../../core/http/lookup.ts'
import { sseComment } from '../../core/http/sse.ts'
import { nowOrLater } from '../../core/jobs/now-or-later.ts'
import { untilDone } from '../../core/jobs/until-done.ts'
import { NotFound } from '../../core/errors/common.ts'
import type { Authority } from './certificates/authority.ts'
import type { Certificates } from './certificates/certificates.ts'
import { decide, type Decision, type Request } from './decide/decide.ts'
import { startDecisionServer, type DecisionServer } from './decide/server.ts'
import type { KeptAnswers } from './decide/kept.ts'
import { HostnameInUse, IngressExists, TargetNotFound, TooManyIngresses } from './errors.ts'
import type { CallLeases } from './leases.ts'
import type { IngressMetrics } from './metrics.ts'
import { prepareFolders } from './process/files.ts'
import type { Nginx } from './process/nginx.ts'
import type { IngressPaths } from './process/paths.ts'
import { authPurpose, type IngressRecord, type RuleAuth } from './record.ts'
import type { IngressRepository } from './repository.ts'
import type { RequestLogs } from './requests.ts'
import { checkRules, claimsOf, type CheckedRule, type Ports } from './rules/check.ts'
import { captureName } from './rules/hostname.ts'
import { RuleTable } from './rules/table.ts'
import type { CreateIngress, IngressView, RequestEntry } from './schemas.ts'
import type { Targets } from './targets.ts'
import { ingressView } from './view.ts'

export interface IngressesOptions {
  readonly repository: IngressRepository
  readonly targets: Targets
  readonly secrets: Secrets
  readonly ports: Ports
  readonly uid: number
  readonly paths: IngressPaths
  readonly nginx: Nginx
  readonly certificates: Certificates
  readonly authority: Authority
  readonly kept: KeptAnswers
  readonly requests: RequestLogs
  readonly leases: CallLeases
  readonly metrics: IngressMetrics
  readonly log: Logger
}

const MOST = 2000
/** How often a request is decided about whose rules change while it waits. */
const MOST_DECISIONS = 10
const CHANGING: Decision = { kind: 'refuse', status: 503, reason: 'The rules of this server are being changed. Try again in a moment.' }

export class Ingresses {
  readonly #options: IngressesOptions
  readonly #inLine = createLine()
  readonly #closing = new AbortController()
  readonly #secrets = new Map<string, string | undefined>()
  #records: readonly IngressRecord[] = []
  #table = new RuleTable([], undefined)
  #decisions: DecisionServer | undefined

  constructor (options: IngressesOptions) {
    this.#options = options
  }

  /** Instances are known now: an earlier server's nginx, which is adopted, gets answers again. */
  async begin (signal: AbortSignal): Promise<void> {
    const { repository, paths, uid, kept, nginx, certificates, requests, log, targets, leases } = this.#options
    await prepareFolders(paths, uid)
    this.#take(await repository.all())
    await kept.forget()
    await certificates.open()
    await this.#keepCertificates()
    this.#decisions = await startDecisionServer(paths.folder, uid, async (request) => await this.#decide(request), log)
    await nginx.start(signal)
    await certificates.start()
    const isKnown = (id: string): boolean => targets.find(id) !== undefined
    await requests.retainOnly(isKnown)
    // An earlier server's nginx may have connections to these.
    for (const ref of [...await requests.instances(), ...this.#records.flatMap(({ rules }) => rules.map(({ instance }) => instance))]) targets.know(ref)
    leases.start(() => nginx.pid, (error) => { log.warn({ err: error }, 'the connections to instances could not be looked at') })
    requests.start(isKnown, (error) => { log.warn({ err: error }, 'the requests to instances could not be bounded') })
  }

  /** @param ending whether nginx should end, too */
  async close (ending: boolean): Promise<void> {
    const { nginx, kept, requests, certificates, leases } = this.#options
    this.#closing.abort()
    await requests.close()
    await leases.close()
    await certificates.close()
    await (ending || this.#records.length === 0 ? nginx.end() : nginx.abandon())
    await this.#decisions?.close()
    this.#decisions = undefined
    await kept.close()
  }

  /** Whether nginx's cache may still contain answers from before the last change. */
  get isSettling (): boolean { return this.#options.kept.isSettling }

  get count (): number { return this.#records.length }

  /** Oldest first. */
  all (): readonly IngressRecord[] { return this.#records }

  /** By id, name, or the beginning of an id. @throws not_found, ambiguous */
  get (ref: string): IngressRecord {
    return lookup(this.#records, ref, { what: 'ingress', byName: true })
  }

  /** @throws invalid_request, instance_not_found, already_exists, hostname_in_use */
  async create ({ name, rules, tags = {} }: CreateIngress): Promise<IngressRecord> {
    const { ports, repository, secrets } = this.#options
    const checked = checkRules(rules, ports)
    this.#requireTargets(checked)
    return await this.#inLine(async () => {
      if (this.#records.length >= MOST) throw TooManyIngresses(MOST)
      if (this.#records.some((each) => each.name === name)) throw IngressExists(name)
      const id = createId()
      const sealed = (auth: CheckedRule['auth']): { auth?: RuleAuth } => auth === undefined ? {} : { auth: { header: auth.header, sealed: secrets.seal(authPurpose(id), auth.value) } }
      const record = { id, name, tags, createdAt: Date.now(), rules: checked.map(({ auth, ...rule }) => ({ ...rule, ...sealed(auth) })) }
      await this.#requireFree(record)
      const isNew = await nowOrLater(async () => {
        const isStored = await repository.insert(record, claims(record, ports))
        if (isStored) await this.#changed()
        return isStored
        // Whoever asked takes it for not made, and it may have been stored all the same.
      }, () => { this.#settleLater(async () => { await repository.remove(record) }) })
      if (!isNew) {
        // Another server of this database was faster.
        await this.#requireFree(record)
        throw IngressExists(name)
      }
      await this.#keepCertificates()
      return record
    })
  }

  async delete (ref: string): Promise<void> {
    const { repository } = this.#options
    await this.#inLine(async () => {
      const record = this.get(ref)
      await nowOrLater(async () => {
        await repository.remove(record)
        await this.#changed()
        // It may have been stored all the same, and must not be served any more then.
      }, () => { this.#settleLater(async () => { await repository.settle(record) }) })
      await this.#keepCertificates()
    })
  }

  view (record: IngressRecord): IngressView {
    return ingressView(record, this.#problemOf(record), this.#options.certificates.statesOf(record))
  }

  /** The view, with the problems that the last requests have shown. */
  async current (record: IngressRecord): Promise<IngressView> {
    const problem = this.#problemOf(record) ?? await this.#silenceOf(record)
    return ingressView(record, problem, this.#options.certificates.statesOf(record))
  }

  /** As PEM. */
  async authority (): Promise<string> {
    return await this.#options.authority.certificate()
  }

  /** Requests to an instance, newest last. @throws not_found */
  async requests (ref: string, limit: number): Promise<RequestEntry[]> {
    const { targets, requests } = this.#options
    const facts = targets.find(ref)
    if (facts === undefined) throw NotFound('instance', ref)
    return await requests.read(facts.id, limit)
  }

  /** Requests to an instance as they come, as Server-Sent Events, until it is deleted. @throws not_found */
  follow (ref: string, signal: AbortSignal): AsyncGenerator<string, void, void> {
    const { targets, requests } = this.#options
    const facts = targets.find(ref)
    if (facts === undefined) throw NotFound('instance', ref)
    return requestEvents(requests.follow(facts.id, () => targets.find(facts.id) !== undefined, signal))
  }

  /** An instance has changed or is gone: answers about it are no longer valid. */
  async instanceChanged (): Promise<void> {
    await this.#options.kept.forget()
  }

  async instanceDeleted (id: string): Promise<void> {
    await this.#options.kept.forget()
    const { leases, requests, log } = this.#options
    leases.forget(id)
    await requests.remove(id).catch((error: unknown) => { log.warn({ err: error, instanceId: id }, 'the requests to an instance could not be removed') })
  }

  async #decide (request: Request): Promise<Decision> {
    const { targets, metrics } = this.#options
    try {
      const decision = await this.#decideByNow(async (table) => await decide({ table, targetOf: async (ref, port) => await targets.reach(ref, port, request), secretOf: (id, auth) => this.#secretOf(id, auth) }, request))
      metrics.decided(decision.kind)
      return decision
    } catch (error) {
      metrics.decided('failed')
      throw error
    }
  }

  /** An instance may take a minute to wake. Nobody is let through by a rule that has been deleted meanwhile, or has got a header: nginx would keep that answer, too, as the sweep after the change is over by then. */
  async #decideByNow (decideBy: (table: RuleTable) => Promise<Decision>): Promise<Decision> {
    for (let left = MOST_DECISIONS; left > 0; left--) {
      const table = this.#table
      const decision = await decideBy(table)
      // Each change makes a new table.
      if (decision.kind !== 'forward' || table === this.#table) return decision
    }
    return CHANGING
  }

  /** What keeps it from that is in the log, and it is looked at again by itself. */
  async #keepCertificates (): Promise<void> {
    await this.#options.certificates.keep(this.#records).catch(() => {})
  }

  /** What a change that failed has stored is not known: it is read as soon as that works. @param undo what is done before */
  #settleLater (undo: () => Promise<void>): void {
    void untilDone(async () => {
      await this.#inLine(async () => {
        await undo()
        await this.#changed()
      })
    }, this.#closing.signal)
  }

  async #changed (): Promise<void> {
    this.#take(await this.#options.repository.all())
    await this.#options.kept.forget()
  }

  #take (records: readonly IngressRecord[]): void {
    this.#records = records
    this.#secrets.clear()
    this.#table = new RuleTable(records, this.#options.ports.http[0])
  }

  #secretOf (ingressId: string, { sealed }: RuleAuth): string | undefined {
    if (!this.#secrets.has(sealed)) this.#secrets.set(sealed, this.#open(ingressId, sealed))
    return this.#secrets.get(sealed)
  }

  #open (ingressId: string, sealed: string): string | undefined {
    try {
      return this.#options.secrets.open(authPurpose(ingressId), sealed)
    } catch (error) {
      this.#options.log.error({ err: error, ingressId }, 'the value of a header of an ingress cannot be opened')
      return undefined
    }
  }

  #requireTargets (rules: readonly CheckedRule[]): void {
    for (const [index, { instance }] of rules.entries()) {
      if (captureName(instance) === undefined && this.#options.targets.find(instance) === undefined) throw TargetNotFound(`rules[${index}].target.instance`, instance)
    }
  }

  async #requireFree (record: IngressRecord): Promise<void> {
    const { ports, repository } = this.#options
    for (const [index, rule] of record.rules.entries()) {
      for (const { claim, port } of claimsOf(rule, ports)) {
        const owner = await repository.ownerOf(claim)
        if (owner === undefined) continue
        throw HostnameInUse(`rules[${index}].match`, rule.hostname, port, rule.path, `the ingress ${this.#records.find(({ id }) => id === owner)?.name ?? owner}`)
      }
    }
  }

  /** Whether a program did not accept the last connection. This makes no connection itself. */
  async #silenceOf ({ id, rules }: IngressRecord): Promise<string | undefined> {
    const { targets, requests } = this.#options
    for (const { hostname, instance, targetPort } of rules) {
      const facts = captureName(instance) === undefined ? targets.find(instance) : undefined
      const last = facts === undefined ? undefined : await requests.lastTo(facts.id, id, targetPort)
      if (last?.isTaken === false) return `${hostname}: nobody took connections at port ${targetPort} of the instance ${instance} when it was last asked, at ${last.time}`
    }
    return undefined
  }

  #problemOf ({ id, rules }: IngressRecord): string | undefined {
    const { nginx, certificates, targets, ports } = this.#options
    if (nginx.problem !== undefined) return nginx.problem
    for (const { hostname, instance, tls, auth, port } of rules) {
      if (!(tls ? ports.https : ports.http).includes(port)) return `${hostname}: this server does not listen on port ${port} any more`
      const certificate = tls ? certificates.problemOf(hostname) : undefined
      if (certificate !== undefined) return certificate
      if (auth !== undefined && this.#secretOf(id, auth) === undefined) return `${hostname}: the value of the header ${auth.header} cannot be opened with keys/secrets.key`
      const target = captureName(instance) === undefined ? targets.problemOf(instance) : undefined
      if (target !== undefined) return `${hostname}: ${target}`
    }
    return undefined
  }
}

async function * requestEvents (blocks: AsyncIterable<readonly RequestEntry[]>): AsyncGenerator<string, void, void> {
  for await (const entries of blocks) yield entries.length === 0 ? sseComment('waiting') : entries.map((entry) => `data: ${JSON.stringify(entry)}\n\n`).join('')
}

function claims (record: IngressRecord, ports: Ports): string[] {
  return record.rules.flatMap((rule) => claimsOf(rule, ports).map(({ claim }) => claim))
}
