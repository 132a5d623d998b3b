// Finds out whether Virtualization.framework is here, and vfkit in a version that the driver knows; and whether they run guests: they must have booted the guests' own kernel.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isOlder } from '../../core/compare-versions.ts'
import type { HostCommands } from '../../core/contracts/services.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import type { HypervisorProbe } from '../../core/library/hypervisor.ts'
import type { ProbeCache } from '../../core/library/vmm/probe-cache.ts'
import { HostCommandFailed, HostCommandMissing } from '../../core/process/run.ts'

const VERSION = /^vfkit version: v?([0-9]+\.[0-9]+(?:\.[0-9]+)?)/
const VERSION_TIMEOUT_MS = 10_000
/** The version whose sources the driver's arguments were checked against. */
const OLDEST = '0.6.0'
const LOOK_PAUSE_MS = 20

export interface ProbedSystem {
  readonly kernel: string
  readonly initrd: string
  readonly version: string
}

export interface VzProbeOptions {
  readonly binary: string
  /** time for the kernel to boot, `ms` */
  readonly bootTimeoutMs: number
  readonly commands: HostCommands
  readonly system: () => Promise<ProbedSystem>
  readonly cache: ProbeCache
  readonly platform: NodeJS.Platform
}

/** Why the framework does not exist on a platform; undefined on macOS. */
export function elsewhere (platform: NodeJS.Platform): string | undefined {
  return platform === 'darwin' ? undefined : 'vz is a part of macOS, and this host is not one'
}

/** The driver's `probe`. */
export async function probeVz (options: VzProbeOptions): Promise<HypervisorProbe> {
  const reason = elsewhere(options.platform)
  if (reason !== undefined) return { supported: false, reason }
  const version = await findVersion(options)
  if (typeof version !== 'string') return version
  if (isOlder(version, OLDEST)) return { supported: false, version, reason: `vfkit ${version} is older than ${OLDEST}, the oldest that the driver knows` }
  const system = await options.system()
  const problem = await options.cache.recall(`vfkit ${version} ${system.version}`, () => bootProblem(system, options))
  return problem === undefined ? { supported: true, version, acceleration: 'hvf' } : { supported: false, version, reason: problem }
}

async function findVersion ({ binary, commands }: VzProbeOptions): Promise<string | HypervisorProbe> {
  try {
    const { stdout } = await commands.run(binary, ['--version'], { timeoutMs: VERSION_TIMEOUT_MS })
    return VERSION.exec(stdout)?.[1] ?? { supported: false, reason: `${binary} does not say which version of vfkit it is` }
  } catch (error) {
    if (error instanceof HostCommandFailed || HostCommandMissing.is(error)) return { supported: false, reason: error.message }
    throw error
  }
}

async function bootProblem (system: ProbedSystem, options: VzProbeOptions): Promise<string | undefined> {
  try {
    return (await bootToPanic(system, options)).includes('Kernel panic') ? undefined : 'the guests\' kernel did not boot with vfkit'
  } catch (error) {
    if (error instanceof HostCommandFailed || HostCommandMissing.is(error)) return `the guests' kernel did not boot with vfkit: ${error.message}`
    throw error
  }
}

/** A kernel that finds no first process panics, and stops there; so vfkit is ended once the panic is there. */
async function bootToPanic ({ kernel, initrd }: ProbedSystem, { binary, bootTimeoutMs, commands }: VzProbeOptions): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-vfkit-probe-'))
  const serial = join(folder, 'serial')
  const said = new AbortController()
  try {
    const args = ['--cpus', '1', '--memory', '256', '--kernel', kernel, '--initrd', initrd, '--kernel-cmdline', 'console=hvc0 quiet panic=0 rdinit=/none', '--device', `virtio-serial,logFilePath=${serial}`]
    const ended = commands.run(binary, args, { timeoutMs: bootTimeoutMs, signal: said.signal }).then(() => true, (error: unknown) => {
      if (!said.signal.aborted) throw error
      return true
    })
    while (!await Promise.race([ended, sleep(LOOK_PAUSE_MS, false)])) {
      if (!(await textOf(serial)).includes('Kernel panic')) continue
      said.abort()
      await ended
    }
    return await textOf(serial)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function textOf (file: string): Promise<string> {
  return await readFile(file, 'latin1').catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return ''
    throw error
  })
}
