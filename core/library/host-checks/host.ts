// The checks of a host that need neither a server nor root: of the command, where it runs, and of a server, for its own host.
import { readFile, readdir } from 'node:fs/promises'
import { isOlder } from '../../compare-versions.ts'
import { leastNode } from '../../version.ts'
import { check, type Finding, type Look } from './check.ts'
import { disk } from './disk.ts'
import { keyFiles } from './keys.ts'
import { installed, subjectOf, versionOf } from './installed.ts'
import { kvm } from './kvm.ts'
import { PACKAGES } from './packages.ts'
import { findTool, type ToolPath } from './tools.ts'
import { units } from './units.ts'

/** What the checks look at. */
export interface HostPlace extends ToolPath {
  /** where a server keeps its data */
  readonly dataFolder: string
  /** a folder for files of a moment; absent: in the data folder, where this user may write there, and the folder of temporary files */
  readonly scratch?: string
  /** files that hold keys, as far as they exist */
  readonly keyFiles: readonly string[]
}

const VMMS = ['cloud-hypervisor', 'firecracker']

/** All findings, in an order of their own. @param more checks of the caller's, which come behind those of the host itself */
export async function hostFindings (place: HostPlace, more: ReadonlyArray<Promise<Finding>> = []): Promise<Finding[]> {
  return await Promise.all([
    check('Node.js', async () => await node()),
    check('KVM', async () => await kvm(place)),
    check('IOMMU', iommu),
    check('namespaces', namespaces),
    check('control groups', controlGroups),
    check('disk', async () => await disk(place)),
    check('clock', clock),
    ...more,
    check('keys', async () => await keyFiles(place.keyFiles)),
    check('units', async () => await units(place)),
    ...PACKAGES.map(async (each) => await check(subjectOf(each), async () => await installed(each, place))),
    ...VMMS.map(async (command) => await check(command, async () => await vmm(command, place)))
  ])
}

/** @param version default: that of this process */
export async function node (version = process.versions.node): Promise<Look> {
  const found = `v${version}`
  return await Promise.resolve(isOlder(version, leastNode) ? { verdict: 'failed', found, remedy: `install Node.js ${leastNode} or later` } : { verdict: 'ok', found })
}

async function iommu (): Promise<Look> {
  const groups = await readdir('/sys/kernel/iommu_groups').catch(() => [])
  return groups.length > 0 ? { verdict: 'ok', found: `${groups.length} groups` } : { verdict: 'warning', found: 'off: no PCI devices for VMs', remedy: 'only for devices: intel_iommu=on or amd_iommu=on on the kernel\'s command line' }
}

async function namespaces (): Promise<Look> {
  if (process.getuid?.() === 0) return { verdict: 'ok', found: 'root' }
  const most = Number((await readFile('/proc/sys/user/max_user_namespaces', 'utf8')).trim())
  return most > 0 ? { verdict: 'warning', found: 'not root: no networks for VMs', remedy: 'run the server as root for networks and limits' } : { verdict: 'failed', found: 'not root, and user namespaces are off: images cannot be unpacked', remedy: 'run the server as root, or sysctl user.max_user_namespaces=10000' }
}

async function controlGroups (): Promise<Look> {
  const controllers = await readFile('/sys/fs/cgroup/cgroup.controllers', 'utf8').catch(() => undefined)
  if (controllers === undefined) return { verdict: 'warning', found: 'no version 2: VMs have no limits of processor and memory on the host', remedy: 'boot with systemd.unified_cgroup_hierarchy=1' }
  const missing = ['cpu', 'memory', 'pids'].filter((name) => !controllers.split(/\s/).includes(name))
  return missing.length === 0 ? { verdict: 'ok', found: 'version 2 with cpu, memory and pids' } : { verdict: 'warning', found: `version 2 without ${missing.join(', ')}: VMs have not all limits on the host`, remedy: 'do not mount these controllers as version 1' }
}

const SENSIBLE_YEAR = 2026

async function clock (): Promise<Look> {
  const now = new Date()
  return await Promise.resolve(now.getUTCFullYear() < SENSIBLE_YEAR ? { verdict: 'failed', found: now.toISOString(), remedy: 'set the clock: certificates and expiries go by it' } : { verdict: 'ok', found: now.toISOString() })
}

/** The default VMM is among the packages. */
async function vmm (command: string, place: ToolPath): Promise<Look> {
  const file = await findTool(command, place)
  return file === undefined ? { verdict: 'ok', found: 'not installed; "npm run install-vmm" in a checkout fetches it for who wants it' } : await versionOf(file, '--version')
}
