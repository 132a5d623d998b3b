// The origins of services: images, which are pulled or built, or snapshots.
import { basename, resolve } from 'node:path'
import { Refusal } from '../api/failures.ts'
import type { Api } from '../api/client.ts'
import { path } from '../api/path.ts'
import { dockerfileFields } from '../build/dockerfile.ts'
import { finishBuild } from '../build/finish.ts'
import { sendBuild } from '../build/send.ts'
import { Failure } from '../failure.ts'
import { pullImage } from '../pull.ts'
import type { Session } from '../session.ts'
import type { Image, Snapshot } from '../views.ts'
import type { BuildModel, ServiceModel } from './model.ts'

/** The digest of its image or the id of its snapshot, by service. */
export type Origins = ReadonlyMap<string, string>

/** The origins that exist. */
export async function presentOrigins (api: Api, services: readonly ServiceModel[]): Promise<Origins> {
  const origins = new Map<string, string>()
  for (const { service, image, snapshot } of services) {
    const origin = snapshot !== undefined ? await snapshotId(api, snapshot) : await readyDigest(api, image ?? '')
    if (origin !== undefined) origins.set(service, origin)
  }
  return origins
}

/** Pulls and builds the missing origins; with `build`, builds all that can be built. */
export async function bringOrigins (session: Session, api: Api, services: readonly ServiceModel[], build: boolean): Promise<Origins> {
  const origins = new Map<string, string>()
  for (const { service, image = '', snapshot, build: model } of services) {
    if (snapshot !== undefined) origins.set(service, await snapshotId(api, snapshot))
    else {
      if (model !== undefined && (build || await readyDigest(api, image) === undefined)) await buildImage(session, api, image, model)
      origins.set(service, (await pullImage(session, api, image)).digest)
    }
  }
  return origins
}

async function buildImage (session: Session, api: Api, image: string, { context, dockerfile, dockerfileText, args, target, noCache }: BuildModel): Promise<void> {
  session.say(`${image}: building ${basename(context)}`)
  const build = await sendBuild(session, api, context, {
    image_name: image.slice(image.indexOf('/') + 1),
    ...dockerfileText !== undefined ? { dockerfile: dockerfileText } : dockerfile === undefined ? {} : await dockerfileFields(context, resolve(context, dockerfile)),
    build_args: Object.keys(args).length === 0 ? undefined : args,
    target,
    no_cache: noCache ? 'true' : undefined
  })
  await finishBuild(session, api, build, process.stderr)
}

async function readyDigest (api: Api, image: string): Promise<string | undefined> {
  try {
    const { status, digest } = await api.call<Image>('GET', path`/images/${image}`)
    return status === 'ready' ? digest : undefined
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) return undefined
    throw error
  }
}

async function snapshotId (api: Api, ref: string): Promise<string> {
  const named = await api.list<Snapshot>('/snapshots', { name: ref })
  if (named.length > 1) throw new Failure(`there are several snapshots named ${ref}`, { hint: 'name the one that is meant by its id' })
  return named[0]?.id ?? (await api.call<Snapshot>('GET', path`/snapshots/${ref}`)).id
}
