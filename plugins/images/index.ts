// The images plugin: OCI images, pulled and kept as read-only root file systems.
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import { HostCommandMissing } from '../../core/process/run.ts'
import { checkTool } from '../../core/process/tool-version.ts'
import { createShares } from '../../core/jobs/shares.ts'
import { buildImages } from './build.ts'
import { TooManyPulls } from './errors.ts'
import { manifest } from './manifest.ts'
import { imageRoutes } from './routes.ts'

/** what takes images in */
const TOOLS = ['skopeo', 'umoci'] as const

export const plugin = definePlugin({
  manifest,
  create (deps, config) {
    const { apiKeys, commands, log } = deps
    const images = buildImages(deps, config)
    return {
      services: { images, imageSources: images },
      async start (signal) {
        const obstacle = await images.obstacle()
        if (obstacle !== undefined) throw new SkipPlugin(obstacle)
        await Promise.all(TOOLS.map(async (file) => await checkTool(file, { commands, log, packages: manifest.hostPackages, signal }).catch((error: unknown) => {
          // Images that are here already can be used nevertheless.
          if (!HostCommandMissing.is(error)) throw error
          log.warn(error.message)
        })))
        await images.open()
      },
      routes: imageRoutes({
        images,
        shares: createShares({ perOwner: config.maxPullsPerKey, inAll: config.maxPulls, isOver: async (name) => await images.isAtRest(name), refuse: TooManyPulls }),
        mayWrite: ({ principal }, repository) => principal !== null && apiKeys.mayWrite(principal, repository)
      }),
      stop: async () => { await images.close() }
    }
  }
})
