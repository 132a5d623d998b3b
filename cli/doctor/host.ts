// The doctor's checks of this host: they need neither a server nor root.
import { constants } from 'node:fs'
import { access, copyFile, mkdtemp, readdir, readFile, rm, statfs, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { size } from '../output/values.ts'
import { check, type Finding, type Look } from './check.ts'
import { keyFiles } from './keys.ts'
import { kvm } from './kvm.ts'
import { ports } from './ports.ts'
import { findTool, runTool } from './tools.ts'
import { units } from './units.ts'

const DATA_FOLDER = '/var/lib/berth'
const FREE_ENOUGH = 10 * 2 ** 30
const ANSWER_MS = 2000

/** A command that the server runs: its purpose, its package in Debian, and how it prints its version. */
type Tool = readonly [command: string, use: string, debianPackage: string, versionArgument: string]

export const TOOLS: readonly Tool[] = [
  ['qemu-system-x86_64', 'VMs', 'qemu-system-x86', '--version'],
  ['skopeo', 'images', 'skopeo', '--version'],
  ['umoci', 'images', 'umoci', '--version'],
  ['mkfs.erofs', 'images', 'erofs-utils', '-V'],
  ['mkfs.ext4', 'disks', 'e2fsprogs', '-V'],
  ['docker-registry', 'the built-in registry', 'docker-registry', '--version'],
  ['ip', 'networks', 'iproute2', '-V'],
  ['nft', 'networks', 'nftables', '--version'],
  ['dnsmasq', 'names in networks', 'dnsmasq-base', '--version']
]

const VMMS = ['cloud-hypervisor', 'firecracker']

export async function hostFindings (environment: NodeJS.ProcessEnv): Promise<Finding[]> {
  return [
    await check('Node.js', node),
    await check('KVM', async () => await kvm(environment)),
    await check('IOMMU', iommu),
    await check('namespaces', namespaces),
    await check('control groups', controlGroups),
    await check('disk', disk),
    await check('clock', clock),
    await check('ports', async () => await ports(isBerth)),
    await check('keys', async () => await keyFiles(environment)),
    await check('units', async () => await units(environment)),
    ...await Promise.all(TOOLS.map(async (each) => await check(each[0], async () => await tool(each, environment)))),
    ...await Promise.all(VMMS.map(async (command) => await check(command, async () => await vmm(command, environment))))
  ]
}

/** Whether a Berth server answers at a port of this host. */
async function isBerth (port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const asked = request({ host: '127.0.0.1', port, path: '/health', timeout: ANSWER_MS }, (answer) => {
      answer.resume()
      resolve(answer.headers['x-request-id'] !== undefined)
    })
    asked.once('timeout', () => asked.destroy())
    asked.once('error', () => resolve(false))
    asked.end()
  })
}

async function node (): Promise<Look> {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const isNew = major > 20 || (major === 20 && minor >= 20)
  return await Promise.resolve(isNew ? { verdict: 'ok', found: process.version } : { verdict: 'failed', found: process.version, remedy: 'install Node.js 20.20 or later' })
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

async function disk (): Promise<Look> {
  const folder = await access(DATA_FOLDER, constants.R_OK).then(() => DATA_FOLDER, () => tmpdir())
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  const shares = await reflinks(folder)
  const found = `${size(free)} free at ${folder}${shares === undefined ? '' : shares ? ', blocks are shared' : ', blocks are not shared: forks and snapshots are copies'}`
  return free < FREE_ENOUGH ? { verdict: 'warning', found, remedy: 'images, disks and memory need room: 10 GiB or more' } : { verdict: 'ok', found }
}

/** Undefined when this user may not write there. */
async function reflinks (folder: string): Promise<boolean | undefined> {
  const own = await mkdtemp(join(folder, '.berth-doctor-')).catch(() => undefined)
  if (own === undefined) return undefined
  try {
    await writeFile(join(own, 'a'), 'x')
    return await copyFile(join(own, 'a'), join(own, 'b'), constants.COPYFILE_FICLONE_FORCE).then(() => true, () => false)
  } finally {
    await rm(own, { recursive: true, force: true })
  }
}

const SENSIBLE_YEAR = 2026

async function clock (): Promise<Look> {
  const now = new Date()
  return await Promise.resolve(now.getUTCFullYear() < SENSIBLE_YEAR ? { verdict: 'failed', found: now.toISOString(), remedy: 'set the clock: certificates and expiries go by it' } : { verdict: 'ok', found: now.toISOString() })
}

async function tool ([command, use, debianPackage, argument]: Tool, environment: NodeJS.ProcessEnv): Promise<Look> {
  const file = await findTool(command, environment)
  if (file === undefined) return { verdict: 'warning', found: `missing: no ${use}`, remedy: `apt-get install ${debianPackage}` }
  return { verdict: 'ok', found: (await runTool(file, [argument])).said }
}

/** The default VMM is among the tools. */
async function vmm (command: string, environment: NodeJS.ProcessEnv): Promise<Look> {
  const file = await findTool(command, environment)
  return { verdict: 'ok', found: file === undefined ? 'not installed; "npm run install-vmm" in a checkout fetches it for who wants it' : (await runTool(file, ['--version'])).said }
}
