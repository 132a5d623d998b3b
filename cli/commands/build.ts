// `berth build`: a folder becomes an image.
import { readFile } from 'node:fs/promises'
import { isAbsolute, relative, resolve } from 'node:path'
import FormData from 'form-data'
import type { Api } from '../api/client.ts'
import { path } from '../api/path.ts'
import { archiveOf } from '../build/context.ts'
import { followBuild } from '../build/follow.ts'
import { Failure } from '../failure.ts'
import type { Input } from '../input.ts'
import { printMade } from '../output/made.ts'
import type { Run } from '../spec.ts'
import type { Build } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const folder = resolve(input.optionalArgument(0) ?? '.')
  const form = await formOf(folder, input)
  session.progress.step(`sending ${folder}`)
  const build = await api.call<Build>('POST', '/builds', { upload: { content: form, headers: form.getHeaders() } })
  session.progress.end()
  if (input.flag('detach')) return await printMade(session, build)
  // What is printed for programs must not be mixed with the log.
  const log = session.format === 'table' ? process.stdout : process.stderr
  try {
    await followBuild(api, build.id, true, log)
  } finally {
    if (session.interrupted.aborted) await cancel(api, build.id)
  }
  const ended = await api.call<Build>('GET', path`/builds/${build.id}`)
  if (ended.status !== 'ready') throw new Failure(`the build is ${ended.status}${ended.error == null ? '' : `: ${ended.error}`}`)
  if (session.format !== 'table') await session.print(ended)
  else session.line(ended.image_ref ?? ended.id)
  return 0
}

async function formOf (folder: string, input: Input): Promise<FormData> {
  const form = new FormData()
  const put = (field: string, value: string | number | undefined): void => { if (value !== undefined) form.append(field, String(value)) }
  const json = (field: string, value: unknown): void => { if (value !== undefined) form.append(field, JSON.stringify(value)) }
  const dockerfile = input.text('file')
  if (dockerfile !== undefined) {
    const inside = relative(folder, resolve(dockerfile))
    // One that lies elsewhere is sent as its content.
    if (inside.startsWith('..') || isAbsolute(inside)) put('dockerfile', await content(dockerfile))
    else put('dockerfile_path', inside)
  }
  put('image_name', input.text('imageName'))
  json('build_args', input.pairs('buildArg'))
  put('target', input.text('target'))
  if (input.choice('cache') === false) put('no_cache', 'true')
  const secrets = input.list('secret')
  if (secrets.length > 0) json('secrets', secrets.map((id) => ({ id })))
  put('builder_id', input.text('builder'))
  put('cache_scope', input.text('cacheScope'))
  put('network_mode', input.text('network'))
  put('egress_mode', input.text('egress'))
  put('cpus', input.integer('vcpus'))
  put('memory_mb', input.integer('memory'))
  put('timeout_seconds', input.integer('buildTimeout'))
  json('tags', input.pairs('tag'))
  form.append('source', await archiveOf(folder), { filename: 'source.tar.gz', contentType: 'application/gzip' })
  return form
}

async function content (file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new Failure(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** The connection of before has ended with Ctrl-C. */
async function cancel (api: Api, id: string): Promise<void> {
  await api.call('DELETE', path`/builds/${id}`, { isUndo: true }).catch(() => undefined)
}
