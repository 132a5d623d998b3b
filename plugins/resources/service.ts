// The service for the host's resources: claims, which are granted or refused in the order of the database, and control groups.
import type { Knex } from 'knex'
import type { GpuUsage } from '../../core/library/gpus.ts'
import type { KeptBytes } from '../../core/http/kept-json.ts'
import type { Logger } from '../../core/contracts/services.ts'
import { checkRoom, countedDisk } from './admission.ts'
import { limitsOf, type Limits, type NetworkCapacity } from './capacity.ts'
import { openGroups, type Groups } from './cgroups/groups.ts'
import { findPlace, kernelFiles } from './cgroups/place.ts'
import { Claims } from './claims.ts'
import type { CgroupState, KeptMemory, ResourceClaim, ResourceService } from '../instances/room/contract.ts'
import { createDiskUsage, type DiskUsageMeter } from './disk-usage.ts'
import { OverviewJson } from './overview-json.ts'
import { overviewOf } from './overview.ts'
import { ClaimRepository, totalOf } from './repository.ts'
import type { Settings } from './settings.ts'

export interface ResourcesOptions {
  readonly settings: Settings
  readonly dataDir: string
  readonly hostId: string
  readonly database: Knex
  readonly log: Logger
  readonly network: NetworkCapacity
  /** null without the plugin devices, or without a GPU that an instance could have */
  readonly gpus: () => Promise<GpuUsage | null>
  /** the vCPUs that the host offers, of which shares are calculated */
  readonly cpuLimit: () => number
}

export class Resources implements ResourceService {
  readonly #options: ResourcesOptions
  readonly #repository: ClaimRepository
  readonly #claims: Claims
  readonly #diskUsage: DiskUsageMeter
  readonly #overview = new OverviewJson()
  #groups: Groups | undefined
  #kept: () => KeptMemory = () => ({ vms: 0, memoryBytes: 0 })
  /** as they were when last read */
  #known: Limits | undefined

  constructor (options: ResourcesOptions) {
    this.#options = options
    this.#repository = new ClaimRepository(options.database, options.hostId)
    this.#claims = new Claims(this.#repository)
    this.#diskUsage = createDiskUsage(options.dataDir)
  }

  async open (): Promise<void> {
    const { settings: { cgroups }, hostId, log } = this.#options
    await this.#repository.open()
    await this.#limits()
    const place = cgroups.mode === 'off' ? { reason: 'they are turned off in the configuration' } : await findPlace(cgroups.parent, await kernelFiles())
    this.#groups = await openGroups(place, { settings: cgroups, name: `berth-${hostId}`.slice(0, 40), log })
    const { active, reason } = this.#groups.state
    if (!active) log.info({ reason }, 'VMMs run without control groups of their own')
  }

  async close (): Promise<void> {
    await this.#groups?.close()
  }

  defaultDiskIoBps (vcpus: number): number | undefined {
    const { settings: { capacity, ratio }, cpuLimit } = this.#options
    if (capacity.diskIoBps === undefined) return undefined
    return Math.max(1, Math.floor(capacity.diskIoBps * ratio.diskIo * Math.min(1, vcpus / cpuLimit())))
  }

  defaultBandwidth (vcpus: number): { readonly downloadBps?: number, readonly uploadBps?: number } {
    const share = Math.min(1, vcpus / this.#options.cpuLimit())
    const of = (whole: number | undefined): number | undefined => whole === undefined ? undefined : Math.max(1, Math.floor(whole * share))
    const downloadBps = of(this.#known?.download?.limit)
    const uploadBps = of(this.#known?.upload?.limit)
    return { ...downloadBps === undefined ? {} : { downloadBps }, ...uploadBps === undefined ? {} : { uploadBps } }
  }

  async claim (claim: ResourceClaim): Promise<void> {
    // A VM that is to come up quickly must not wait until files are counted.
    const [limits, usage] = await Promise.all([this.#limits(), this.#diskUsage.last()])
    const wanted = totalOf([claim])
    await this.#claims.claim(claim, (others, before) => {
      checkRoom(wanted, before, { ...others, diskBytes: countedDisk(others, limits) + usage.imageBytes + usage.registryBytes }, limits)
    })
    if (claim.active) await this.enclose(claim.id, claim)
  }

  async rest (id: string, { keepGroup = false }: { readonly keepGroup?: boolean } = {}): Promise<void> {
    if (!keepGroup) await this.#groups?.remove(id)
    await this.#claims.rest(id)
  }

  async shrink (id: string, diskBytes: number): Promise<void> {
    await this.#claims.shrink(id, diskBytes)
  }

  async memoryLeft (): Promise<number> {
    const [{ memory: { limit } }, { memoryBytes }] = await Promise.all([this.#limits(), this.#claims.totals()])
    return Math.max(0, limit - memoryBytes)
  }

  noteKept (look: () => KeptMemory): void {
    this.#kept = look
  }

  async release (kind: ResourceClaim['kind'], id: string, { keepGroup = false }: { readonly keepGroup?: boolean } = {}): Promise<void> {
    if (kind === 'instance' && !keepGroup) await this.#groups?.remove(id)
    await this.#claims.release(kind, id)
  }

  async retainOnly (kind: ResourceClaim['kind'], claims: readonly ResourceClaim[]): Promise<void> {
    await this.#claims.replaceAll(kind, claims)
    if (kind !== 'instance') return
    await this.#groups?.retainOnly(new Set(claims.filter(({ active }) => active).map(({ id }) => id)))
  }

  async enclose (id: string, { vcpus, memoryBytes }: Pick<ResourceClaim, 'vcpus' | 'memoryBytes'>, pid?: number): Promise<void> {
    await this.#groups?.make(id, { vcpus, memoryBytes }, pid)
  }

  groupsOf (id: string): readonly string[] {
    return this.#groups?.foldersOf(id) ?? []
  }

  cgroups (): CgroupState {
    return this.#groups?.state ?? { active: false, reason: 'the plugin resources has not started' }
  }

  /** as JSON */
  async overview (): Promise<KeptBytes> {
    const [limits, usage, { totals, instances }, gpus] = await Promise.all([this.#limits(), this.#diskUsage.now(), this.#claims.known(), this.#options.gpus()])
    return await this.#overview.of(overviewOf(limits, usage, totals, { cgroups: this.cgroups(), gpus, kept: this.#kept() }), instances)
  }

  async #limits (): Promise<Limits> {
    const { settings, dataDir, network } = this.#options
    this.#known = await limitsOf(settings, dataDir, network)
    return this.#known
  }
}
