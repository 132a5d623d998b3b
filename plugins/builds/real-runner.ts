// The runner of the real plugin: a VM for each build, with the services of other plugins.
import { join } from 'node:path'
import { durationMs } from '../../core/config/quantities.ts'
import { createBuilderImage } from './builder-image/builder-image.ts'
import { createBuildRunner } from './builder-vm/runner.ts'
import type { RunnerSource } from './runner-source.ts'
import { gigabytes } from './settings.ts'

export const realRunner: RunnerSource = {
  requires: ['log', 'events', 'commands', 'server', 'guest', 'images', 'registry', 'volumes', 'workers'],
  optional: [],
  make (deps, config) {
    const { commands, events, server, guest, images, registry, volumes, workers } = deps
    const log = deps.log.child({ plugin: 'builds' })
    const imageTimeoutMs = durationMs(config.imageTimeout)
    const builderImage = createBuilderImage({
      log,
      commands,
      images,
      registry,
      folder: join(server.dataDir, 'builder-image'),
      ...config.builderImage === '' ? {} : { configured: config.builderImage },
      readyTimeoutMs: imageTimeoutMs
    })
    const runner = createBuildRunner({
      log,
      workers,
      volumes,
      diskGb: gigabytes('disk', config.disk),
      bootTimeoutMs: durationMs(config.bootTimeout),
      events,
      server,
      guest,
      images,
      registry,
      builderImage,
      imageTimeoutMs
    })
    return { ...runner, close: async () => { await builderImage.close() } }
  }
}
