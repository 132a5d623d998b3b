// Keeps the guest system (kernel and initrd) and the disk of its kernel's headers between runs, so that only the first private data folder has to fetch them.
import { constants, existsSync } from 'node:fs'
import { copyFile, cp, link, mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { hasCode } from '../../core/errors/system-code.ts'

const keptVersions = 2
const isHeaders = (name: string): boolean => name.startsWith('headers-')

/** Puts the cached guest systems into a new data folder. */
export async function seedSystem (cache: string, dataDir: string): Promise<void> {
  for (const version of await versionsIn(cache)) await copyWhole(join(cache, version), join(dataDir, 'system'), version)
}

/** The results of a server's probes of this host's VMMs by saving and restoring VMs. The next server reuses them, and probes again when they do not apply. */
const PROOFS = ['hypervisor-qemu', 'hypervisor-qemu-microvm'].flatMap((plugin) => ['imaging.json', 'private.json'].map((name) => join(plugin, name)))

/** Puts the known probe results into a new data folder. */
export async function seedProof (cache: string, dataDir: string): Promise<void> {
  for (const proof of PROOFS) await copyIfThere(join(cache, proof), join(dataDir, proof))
}

/** Keeps the probe results of a data folder that is about to be removed. */
export async function keepProof (cache: string, dataDir: string): Promise<void> {
  for (const proof of PROOFS) await copyIfThere(join(dataDir, proof), join(cache, proof))
}

async function copyIfThere (from: string, to: string): Promise<void> {
  const partial = `${to}.${process.pid}`
  try {
    await mkdir(dirname(to), { recursive: true, mode: 0o711 })
    await copyFile(from, partial)
    await rename(partial, to)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
}

/** Keeps the guest systems of a data folder that is about to be removed, and removes old ones from the cache. */
export async function keepSystem (cache: string, dataDir: string): Promise<void> {
  const known = new Set(await versionsIn(cache))
  const fresh = (await versionsIn(join(dataDir, 'system'))).filter(version => !known.has(version))
  for (const version of fresh) await copyWhole(join(dataDir, 'system', version), cache, version)
  if (fresh.length === 0) return
  const ages = await Promise.all((await versionsIn(cache)).map(async version => ({ version, time: (await stat(join(cache, version))).ctimeMs })))
  const newest = ages.sort((a, b) => b.time - a.time)
  const old = [true, false].flatMap(kind => newest.filter(({ version }) => isHeaders(version) === kind).slice(keptVersions))
  for (const { version } of old) await rm(join(cache, version), { recursive: true, force: true })
}

/** Copies a folder under a temporary name and renames it, so that a folder with the final name is complete. */
async function copyWhole (from: string, folder: string, name: string): Promise<void> {
  // A server that is started again on its folder already has it.
  if (existsSync(join(folder, name))) return
  await mkdir(folder, { recursive: true })
  const partial = join(folder, `.${name}.${process.pid}`)
  try {
    // It is large, and nobody writes to it: it is linked.
    if (isHeaders(name)) await linkFiles(from, partial)
    else await cp(from, partial, { recursive: true, preserveTimestamps: true, mode: constants.COPYFILE_FICLONE })
    await rename(partial, join(folder, name))
  } catch (error) {
    await rm(partial, { recursive: true, force: true })
    // Another run removed the original or finished the copy first. A missing system is built anew.
    if (!hasCode(error, 'ENOENT', 'ENOTEMPTY', 'EEXIST')) throw error
  }
}

/** Gives a folder of read-only files a second name. */
export async function linkFiles (from: string, to: string): Promise<void> {
  await mkdir(to)
  for (const name of await readdir(from)) {
    try {
      await link(join(from, name), join(to, name))
    } catch (error) {
      // the two are on different file systems
      if (!hasCode(error, 'EXDEV')) throw error
      await cp(join(from, name), join(to, name), { preserveTimestamps: true, mode: constants.COPYFILE_FICLONE })
    }
  }
}

/** A name that begins with a dot is not complete; `cache` holds packages. */
async function versionsIn (folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).filter(name => !name.startsWith('.') && name !== 'cache')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}
