// The guests' images: a small Debian with the clients that people use, Node with npm, and the programs in `guest/`; once as it is, and once without any authority.
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packageRoot } from '../../../core/package-root.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { debianArchive } from '../../helpers/debian.ts'
import { imageReady } from '../../helpers/images.ts'
import { pushLayout, writeLayout } from '../../helpers/oci.ts'
import type { TestServer } from '../../helpers/server.ts'
import { tar } from '../../helpers/tar.ts'
import { bytesOf } from './origins/echo.ts'

const commands = createHostCommands()
const PROGRAMS = fileURLToPath(new URL('guest', import.meta.url))
const CONFIG = { Env: ['PATH=/usr/local/bin:/usr/bin:/usr/sbin', 'HOME=/root', 'LANG=C.UTF-8'], Cmd: ['/bin/sh'] }
/** Debian packages of the images. */
const USUAL = ['apt', 'bash', 'ca-certificates', 'coreutils', 'curl', 'findutils', 'git', 'grep', 'libstdc++6', 'openssl', 'python3', 'python3-pip', 'sed', 'skopeo', 'wget']
/** No authority anywhere, and no command that would put one there. */
const BARE = ['bash', 'coreutils', 'curl', 'openssl', 'python3', 'wget']

/** Fetches what the images are made of. Where they are made there may be no network. */
export async function fetchImages (): Promise<void> {
  for (const packages of [USUAL, BARE]) await debianArchive(packages)
}

/** Gives a server the image that has only what a few small clients need; its name there. */
export async function pushBareImage (server: TestServer): Promise<string> {
  return await pushOne(server, [await readFile(await debianArchive(BARE))], 'clients/bare:latest')
}

/** Gives a server the image with all clients; its name there. */
export async function pushDebianImage (server: TestServer): Promise<string> {
  return await pushOne(server, [await readFile(await debianArchive(USUAL)), await layerOf(addPrograms)], 'clients/debian:latest')
}

/** Gives a server an image of these layers; its name there. */
export async function pushOne (server: TestServer, layers: readonly Buffer[], name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-image-'))
  try {
    const reference = `${new URL(server.url).host}/${name}`
    await pushLayout(await writeLayout(folder, [{ layers, packing: 'none', config: CONFIG }]), reference, { username: 'key', password: server.key })
    return await imageReady(server, reference)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** An archive of what `fill` puts into a folder. */
export async function layerOf (fill: (root: string) => Promise<void>): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-layer-'))
  try {
    await fill(join(folder, 'root'))
    await commands.run('tar', ['--create', `--file=${join(folder, 'layer.tar')}`, '--owner=0', '--group=0', `--directory=${join(folder, 'root')}`, '.'])
    return await readFile(join(folder, 'layer.tar'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Node with npm, the compiled programs of `guest/` with the libraries that they use, and an image for the guest to push. */
async function addPrograms (root: string): Promise<void> {
  await mkdir(join(root, 'usr/local/bin'), { recursive: true })
  await cp(process.execPath, join(root, 'usr/local/bin/node'))
  await cp(await npmFolder(), join(root, 'usr/local/lib/node_modules/npm'), { recursive: true })
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm'))
  await cp(PROGRAMS, join(root, 'clients'), { recursive: true })
  await writeFile(join(root, 'clients/package.json'), '{"type":"module"}')
  for (const name of await libraries(['@grpc/grpc-js', 'ws'])) await cp(folderOf(name), join(root, 'clients/node_modules', name), { recursive: true })
  // bytes that do not compress
  await writeLayout(join(root, 'clients/image'), [{ layers: [tar([{ path: 'bytes', content: Buffer.concat([...bytesOf(3_000_000)]) }])], packing: 'none' }])
}

/** npm stands beside Node, wherever that is. */
async function npmFolder (): Promise<string> {
  for (const place of [process.execPath, '/usr/bin/node', '/usr/local/bin/node']) {
    const folder = join(dirname(await realpath(place).catch(() => place)), '../lib/node_modules/npm')
    if (existsSync(folder)) return folder
  }
  throw new Error(`npm is not beside ${process.execPath}`)
}

/** These packages and all that they need, as this project has them. */
async function libraries (names: readonly string[]): Promise<Set<string>> {
  const found = new Set<string>()
  const queue = [...names]
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
    if (found.has(name)) continue
    found.add(name)
    const { dependencies = {} } = JSON.parse(await readFile(join(folderOf(name), 'package.json'), 'utf8')) as { readonly dependencies?: Readonly<Record<string, string>> }
    queue.push(...Object.keys(dependencies))
  }
  return found
}

/** The package itself: compiled code finds some in a bundle. */
function folderOf (name: string): string {
  return join(packageRoot, 'node_modules', name)
}
