// Templates of the shapes that most tests create, made once for a checkout and given to each server of a test: its VMs come up as copies of one that has booted, at a tenth of
// the processor time of a boot. Who tests boots turns templates off.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Hypeman from '@onkernel/hypeman'
import { hasCode } from '../../core/errors/system-code.ts'
import { packageRoot } from '../../core/package-root.ts'
import { missingPrivileges } from '../../plugins/networking/privileges.ts'
import { removeServerFolder, startServer, type ServerProcess } from '../../setup/server/process.ts'
import { linkFiles } from '../../setup/server/system-cache.ts'
import { eventually } from './eventually.ts'
import { busyboxImage, push } from './images.ts'
import { figure } from './metrics.ts'
import { ownNetwork } from './own-network.ts'
import { SMALL } from './small.ts'

const cache = join(packageRoot, '.cache/templates')
/** What a template depends on: if a byte of it changes, they are made anew. That is more than a server looks at. */
const MADE_BY = ['plugins/guest', 'plugins/hypervisor-qemu', 'plugins/instances/templates', 'core/library'].map((name) => fileURLToPath(new URL(`../../${name}`, import.meta.url)))
const GUEST = join(packageRoot, 'dist/guest')
/** of what is kept */
const VERSION = 2
const QEMU = '/usr/bin/qemu-system-x86_64'
const networks = missingPrivileges() === undefined
/** what tests create, and what the builds of tests run in: builds/scene.ts */
const SHAPES: ReadonlyArray<Partial<Hypeman.InstanceCreateParams>> = [
  { network: { enabled: false } },
  ...networks ? [{ network: { enabled: true } }] : [],
  { size: '1GB', skip_kernel_headers: true, network: { enabled: false } }
]
/** in ms; who makes them takes half a minute */
const GIVEN_UP_AFTER = 600_000

/** Gives them to a server that has not started yet. Where none can be made, or another test makes them just now, its VMs boot. */
export async function seedTemplates (dataDir: string): Promise<void> {
  let kept = join(cache, await stamp())
  if (!existsSync(kept)) {
    await makeOnce()
    // A server that is the first of a checkout makes the guests' system, too, which the stamp is about.
    kept = join(cache, await stamp())
  }
  if (!existsSync(kept)) return
  const folder = join(dataDir, 'templates')
  await mkdir(folder, { recursive: true, mode: 0o711 })
  await linkTemplates(kept, folder)
}

/** With the disk that VMs have before they are told which, the one file there. */
async function linkTemplates (from: string, to: string): Promise<void> {
  for (const entry of (await readdir(from, { withFileTypes: true })).filter(({ name }) => !name.startsWith('.'))) {
    if (entry.isDirectory()) await linkFiles(join(from, entry.name), join(to, entry.name))
    else await copyFile(join(from, entry.name), join(to, entry.name))
  }
}

async function stamp (): Promise<string> {
  const hash = createHash('sha256')
  for (const folder of [...MADE_BY, GUEST]) {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile() && !entry.name.endsWith('.map')).map(({ parentPath, name }) => join(parentPath, name)).sort()
    for (const file of files) hash.update(`${file}\0`).update(await readFile(file))
  }
  const qemu = await stat(QEMU).catch(() => undefined)
  const systems = await readdir(join(packageRoot, '.cache/system')).catch(() => [])
  hash.update(JSON.stringify([VERSION, qemu?.size, qemu?.mtimeMs, systems.sort(), cpus()[0]?.model, existsSync('/dev/kvm'), SMALL, SHAPES]))
  return hash.digest('hex').slice(0, 16)
}

/** One process at a time makes them; the others do not wait for it. */
async function makeOnce (): Promise<void> {
  const making = join(cache, '.making')
  await mkdir(cache, { recursive: true })
  try {
    if (Date.now() - (await stat(making)).mtimeMs > GIVEN_UP_AFTER) await rm(making, { recursive: true, force: true })
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
  try {
    await mkdir(making)
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return
    throw error
  }
  try {
    await make(making)
    const kept = await stamp()
    for (const name of await readdir(cache)) if (name !== '.making') await rm(join(cache, name), { recursive: true, force: true })
    await rename(making, join(cache, kept))
  } finally {
    await rm(making, { recursive: true, force: true })
  }
}

async function make (target: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-templates-'))
  await chmod(folder, 0o711)
  const networking = { config: { uplink: 'none', ...ownNetwork() } }
  let server: ServerProcess | undefined
  try {
    server = await startServer({ folder, plugins: { ...networks ? { networking } : {}, instances: { config: { templates: { enabled: true, spares: 0, quiet: '100ms' } } } } })
    const sdk = new Hypeman({ baseURL: server.url, apiKey: server.key, maxRetries: 0, timeout: 300_000 })
    const image = await push({ url: server.url, key: server.key, sdk }, await busyboxImage(), 'templates/busybox:latest')
    for (const shape of SHAPES) if (!await makeOne(server, sdk, image, shape)) break
    await server.stop()
    await linkTemplates(join(server.dataDir, 'templates'), target)
  } finally {
    await server?.stop()
    await removeServerFolder(folder)
  }
}

/** False when this host's VMs cannot be saved and restored. */
async function makeOne (server: ServerProcess, sdk: Hypeman, image: string, shape: Partial<Hypeman.InstanceCreateParams>): Promise<boolean> {
  const before = await figure(server, 'berth_instances_templates') ?? 0
  const { id } = await sdk.instances.create({ name: `shape-${before}`, image, ...SMALL, entrypoint: [], cmd: ['sleep', '1000'], ...shape })
  const isMade = await eventually('a template is made', async () => {
    if (/VMs cannot be saved and restored here|a template, or a spare VM of it, could not be made/.test(await readFile(server.logFile, 'utf8'))) return 'not'
    return await figure(server, 'berth_instances_templates') === before + 1 && 'made'
  })
  await sdk.instances.delete(id)
  return isMade === 'made'
}
