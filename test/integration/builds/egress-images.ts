// An image of builders as an operator would bring it, and a base image with curl and no authority of its own. Both are made where there is a network.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CONFIGURATION, PACKAGES } from '../../../plugins/builds/builder-image/recipe.ts'
import { debianArchive } from '../../helpers/debian.ts'
import { imageReady } from '../../helpers/images.ts'
import { pushLayout, writeLayout } from '../../helpers/oci.ts'
import type { TestServer } from '../../helpers/server.ts'
import { tar, type TarEntry } from '../../helpers/tar.ts'

const CLIENT = ['bash', 'coreutils', 'curl', 'grep']

export const BUILDER = 'localhost/own/builder:1'

export async function fetchImages (): Promise<void> {
  for (const packages of [PACKAGES, CLIENT]) await debianArchive(packages)
}

export async function fetchBuilder (): Promise<void> {
  await debianArchive(PACKAGES)
}

export async function pushImages (server: TestServer): Promise<void> {
  await pushBuilder(server)
  await push(server, 'bases/curl:latest', [await readFile(await debianArchive(CLIENT))])
}

export async function pushBuilder (server: TestServer): Promise<void> {
  const configuration = tar(Object.entries(CONFIGURATION).map(([path, content]): TarEntry => ({ path, content })))
  await push(server, 'own/builder:1', [await readFile(await debianArchive(PACKAGES)), configuration])
}

async function push (server: TestServer, name: string, layers: readonly Buffer[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-image-'))
  try {
    const reference = `${new URL(server.url).host}/${name}`
    const layout = await writeLayout(folder, [{ layers, packing: 'none', config: { Env: ['PATH=/usr/sbin:/usr/bin'], Cmd: ['/bin/sh'] } }])
    await pushLayout(layout, reference, { username: 'key', password: server.key })
    await imageReady(server, reference)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
