// `berth build`: a folder becomes an image.
import { resolve } from 'node:path'
import { dockerfileFields } from '../build/dockerfile.ts'
import { finishBuild } from '../build/finish.ts'
import { sendBuild, type BuildFields } from '../build/send.ts'
import type { Input } from '../input.ts'
import { printMade } from '../output/made.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const folder = resolve(input.optionalArgument(0) ?? '.')
  const fields = await fieldsOf(folder, input)
  session.progress.step(`sending ${folder}`)
  const build = await sendBuild(session, api, folder, fields)
  session.progress.end()
  if (input.flag('detach') && !session.interrupted.aborted) return await printMade(session, build)
  // The output for programs must not be mixed with the log.
  const ended = await finishBuild(session, api, build, session.format === 'table' ? process.stdout : process.stderr)
  if (session.format !== 'table') await session.print(ended)
  else session.line(ended.image_ref ?? ended.id)
  return 0
}

async function fieldsOf (folder: string, input: Input): Promise<BuildFields> {
  const dockerfile = input.text('file')
  const secrets = input.list('secret')
  return {
    ...dockerfile === undefined ? {} : await dockerfileFields(folder, resolve(dockerfile)),
    image_name: input.text('imageName'),
    build_args: input.pairs('buildArg'),
    target: input.text('target'),
    no_cache: input.choice('cache') === false ? 'true' : undefined,
    secrets: secrets.length === 0 ? undefined : secrets.map((id) => ({ id })),
    builder_id: input.text('builder'),
    cache_scope: input.text('cacheScope'),
    network_mode: input.text('network'),
    egress_mode: input.text('egress'),
    cpus: input.integer('vcpus'),
    memory_mb: input.integer('memory'),
    timeout_seconds: input.integer('buildTimeout'),
    tags: input.pairs('tag')
  }
}
