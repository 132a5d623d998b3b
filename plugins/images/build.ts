// Puts the parts of the images service together.
import { join } from 'node:path'
import { durationMs, sizeBytes } from '../../core/config/quantities.ts'
import { absentJournal } from '../../core/db/absent-journal.ts'
import type { Journal } from '../../core/db/changes.ts'
import type { RegistrySource } from '../registry/contract.ts'
import { Attempts, type AttemptsDeps } from './attempts.ts'
import { Contents } from './contents.ts'
import type { ImageSources, ImageStatus, OpenRegistry, RegistryAccess } from './contract.ts'
import { createFolders, type Folders } from './folders.ts'
import { createLocks } from '../../core/jobs/locks.ts'
import type { ImagesConfig, Deps } from './manifest.ts'
import { createImagesMetrics } from './metrics.ts'
import { createNames } from './names.ts'
import { FileOwners } from './owners.ts'
import { formatPlatform, hostPlatform } from './platform.ts'
import { attempt } from './record.ts'
import { ImagesRepository } from './repository.ts'
import { resolveReference } from './resolver.ts'
import { Images } from './service.ts'
import { openUpstream } from './upstream.ts'
import { createResolveHost } from '../../core/library/addresses.ts'
import { RegistryTool } from './way/registry-tool.ts'

const QUEUE = 'images'

export type ImagesServices = Pick<Deps, 'log' | 'database' | 'events' | 'jobs' | 'commands' | 'disk' | 'metrics' | 'server'> & { readonly registry: RegistrySource | undefined, readonly journal?: Journal }

/** Builds the service; nothing runs before its `open`. */
export function buildImages (services: ImagesServices, config: ImagesConfig): Images {
  const { log, events, commands, registry } = services
  const host = hostPlatform()
  const timeoutMs = durationMs(config.pullTimeout)
  const repository = new ImagesRepository(services.database, services.server.hostId, Date.now, services.journal ?? absentJournal(services.server.hostId))
  const owners = new FileOwners(commands)
  const folders = createFolders(join(services.server.dataDir, 'images'), owners)
  const resolve = createResolveHost({ allowPrivate: config.allowPrivate, trusted: [...config.insecureRegistries, config.defaultRegistry], setting: 'plugins.images.config.allowPrivate' })
  const tool = new RegistryTool({ commands, log, resolve })
  const skopeo: ImageSources['skopeo'] = async (...run) => await tool.run(...run)
  const open = (options: OpenRegistry): Promise<RegistryAccess> => openUpstream({
    insecureRegistries: config.insecureRegistries, credentialsFile: config.credentialsFile, registry, resolve
  }, options)
  const say = (name: string, status: ImageStatus): void => events.emit('image.changed', { name, status })
  const contents: Contents = new Contents({
    repository,
    folders,
    queue: services.jobs.queue(QUEUE, { concurrency: config.pullConcurrency }),
    locks: createLocks(),
    log,
    owners,
    host,
    compression: config.compression,
    timeoutMs,
    minFreeBytes: sizeBytes(config.minFree),
    disk: services.disk,
    openUpstream: open,
    skopeo,
    metrics: createImagesMetrics(services.metrics, () => contents.waiting()),
    changed: async (digest) => {
      const status = (await repository.content(digest))?.status ?? 'failed'
      for (const name of await repository.names(digest)) say(name, status)
    },
    progressed: async (digest, received, total) => { await repository.progress(digest, received, total) }
  })
  const attempts = new Attempts({
    repository,
    contents,
    log,
    platform: formatPlatform(host),
    waitMs: durationMs(config.resolveWait),
    resolve: resolver({ folders, open, skopeo, host, timeoutMs }),
    changed: async (name) => {
      const tag = await repository.tag(name)
      const digest = tag?.nextDigest ?? tag?.digest
      const content = digest === undefined ? undefined : await repository.content(digest)
      say(name, tag === undefined ? 'failed' : attempt(tag, () => content, () => undefined).status)
    }
  })
  const names = createNames({ repository, registry, defaultRegistry: config.defaultRegistry })
  return new Images({ repository, names, attempts, contents, folders, owners, log, events, host, openUpstream: open, tool })
}

interface ResolverParts {
  readonly folders: Folders
  readonly open: (options: OpenRegistry) => Promise<RegistryAccess>
  readonly skopeo: ImageSources['skopeo']
  readonly host: ReturnType<typeof hostPlatform>
  readonly timeoutMs: number
}

function resolver ({ folders, open, ...rest }: ResolverParts): AttemptsDeps['resolve'] {
  return async (reference, credentials, signal) => {
    const folder = await folders.temporary()
    try {
      const upstream = await open({ repository: reference.repository, credentials, folder, signal })
      try {
        return await resolveReference({ ...rest, upstream, reference, signal })
      } finally {
        await upstream.close()
      }
    } finally {
      await folders.clear(folder)
    }
  }
}
