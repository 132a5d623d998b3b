// A server that builds in real machines, a base image with a compiler, and what a client does about builds.
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { debianArchive } from '../../helpers/debian.ts'
import { busyboxLayer, imageReady } from '../../helpers/images.ts'
import { pushLayout, writeLayout } from '../../helpers/oci.ts'
import { startTestServer, type TestServer } from '../../helpers/server.ts'
import { tar, type TarEntry } from '../../helpers/tar.ts'

const commands = createHostCommands()
/** A small compiler that makes static programs, and what it needs of these packages. */
const COMPILER = ['musl-dev', 'tcc']
const COMPILER_FILES = ['usr/bin/tcc', 'usr/bin/*-tcc', 'usr/lib64', 'usr/lib/*/ld-linux-*', 'usr/lib/*/libc.so.6', 'usr/lib/*/libdl.so.2', 'usr/lib/*/libm.so.6', 'usr/lib/*/libpthread.so.0', 'usr/lib/*/tcc', 'usr/lib/*-linux-musl', 'usr/include/*-linux-musl']
/** For a step: compiles with these arguments. */
export const cc = (args: string): string => `M=$(echo /usr/lib/*-linux-musl) && tcc -static -nostdlib -I/usr/include/$(basename $M) $M/crt1.o ${args} -L$M -lc $M/crtn.o`

export interface Built {
  readonly id: string
  readonly status: string
  readonly error: string | null
  readonly image_ref: string | null
  readonly image_digest: string | null
  readonly builder_instance_id: string | null
  readonly provenance: Readonly<Record<string, unknown>>
  /** of its output */
  readonly lines: readonly string[]
}

export interface Scene {
  readonly server: TestServer
  /** `host:port` of the server */
  readonly host: string
  /** digest of the image with the compiler and a shell, `bases/tcc` */
  readonly baseDigest: string
  readonly secretsDir: string
  /** Asks for a build. */
  submit (files: Readonly<Record<string, string>>, fields?: Readonly<Record<string, string>>): Promise<string>
  /** Follows a build to its end. */
  follow (id: string): Promise<Built>
  build (files: Readonly<Record<string, string>>, fields?: Readonly<Record<string, string>>): Promise<Built>
}

export async function startScene (t: Test, secrets: Readonly<Record<string, string>>, config: Readonly<Record<string, unknown>> = {}): Promise<Scene> {
  const secretsDir = await mkdtemp(join(tmpdir(), 'berth-secrets-'))
  t.teardown(() => rm(secretsDir, { recursive: true, force: true }))
  for (const [name, value] of Object.entries(secrets)) await writeFile(join(secretsDir, name), value, { mode: 0o600 })
  const server = await startTestServer(t, { plugins: { builds: { config: { secretsDir, concurrency: 1, vcpus: 1, memory: '1GB', disk: '4GB', builderDisk: '4GB', ...config } } } })
  const ask: Scene['submit'] = async (files, fields = {}) => await submit(server, archive(files), fields)
  return {
    server,
    get host () { return new URL(server.url).host },
    baseDigest: await pushCompiler(server),
    secretsDir,
    submit: ask,
    follow: async (id) => await follow(server, id),
    build: async (files, fields) => await follow(server, await ask(files, fields))
  }
}

/** A source as people upload it. */
export function archive (files: Readonly<Record<string, string>>): Buffer {
  return gzipSync(tar(Object.entries(files).map(([path, content]): TarEntry => ({ path, content }))))
}

/** Asks for a build of any archive. */
export async function submit (server: TestServer, source: Buffer, fields: Readonly<Record<string, string>>): Promise<string> {
  const form = new FormData()
  form.set('source', new Blob([source]), 'source.tar.gz')
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  const response = await fetch(`${server.url}/builds`, { method: 'POST', headers: { authorization: `Bearer ${server.key}` }, body: form })
  const body = await response.json() as { readonly id?: string, readonly message?: string }
  if (response.status !== 202 || body.id === undefined) throw new Error(`POST /builds: ${response.status} ${body.message ?? ''}`)
  return body.id
}

/** Follows a build of any server to its end. */
export async function follow (server: TestServer, id: string): Promise<Built> {
  const lines: string[] = []
  for await (const event of await server.sdk.builds.events(id, { follow: true }, { timeout: 900_000 })) {
    if (event.type === 'log' && event.content !== undefined) lines.push(event.content)
  }
  const build = await server.api.call('GET', `/builds/${id}`) as Omit<Built, 'lines'>
  return { ...build, lines }
}

async function pushCompiler (server: TestServer): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-image-'))
  try {
    const reference = `${new URL(server.url).host}/bases/tcc:latest`
    await mkdir(join(folder, 'root'))
    await commands.run('tar', ['--extract', `--file=${await debianArchive(COMPILER)}`, `--directory=${join(folder, 'root')}`, '--wildcards', ...COMPILER_FILES.map((path) => `./${path}`)])
    await commands.run('tar', ['--create', `--file=${join(folder, 'layer.tar')}`, '--owner=0', '--group=0', `--directory=${join(folder, 'root')}`, '.'])
    const shell = tar([...await busyboxLayer(), { path: 'lib', type: 'symlink', target: 'usr/lib' }, { path: 'lib64', type: 'symlink', target: 'usr/lib64' }])
    const layout = await writeLayout(join(folder, 'layout'), [{ layers: [shell, await readFile(join(folder, 'layer.tar'))], config: { Env: ['PATH=/bin:/usr/bin'], Cmd: ['/bin/sh'] } }])
    await pushLayout(layout, reference, { username: 'key', password: server.key })
    await imageReady(server, reference)
    return layout.digest
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

export function sha256 (content: Buffer | string): string {
  return createHash('sha256').update(content).digest('hex')
}
