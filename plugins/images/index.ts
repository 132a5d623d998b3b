// The images plugin: OCI images, pulled and kept as read-only root file systems.
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import { HostCommandMissing } from '../../core/process/run.ts'
import { checkTool } from '../../core/process/tool-version.ts'
import { buildImages } from './build.ts'
import { manifest, type Deps } from './manifest.ts'
import { imageRoutes } from './routes.ts'
import { Images } from './service.ts'

/** what takes images in */
const TOOLS = ['skopeo', 'umoci'] as const

export const plugin = definePlugin({
  manifest,
  register (registrar, config) {
    let built: Images | undefined
    const imagesOf = (deps: Deps): Images => {
      built ??= buildImages(deps, config)
      return built
    }
    registrar.provide('images', imagesOf)
    registrar.provide('imageSources', imagesOf)
  },
  async start (deps, _config, signal) {
    const obstacle = await own(deps).obstacle()
    if (obstacle !== undefined) throw new SkipPlugin(obstacle)
    await Promise.all(TOOLS.map(async (file) => await checkTool(file, { commands: deps.commands, log: deps.log, signal }).catch((error: unknown) => {
      // Images that are there already can be used all the same.
      if (!HostCommandMissing.is(error)) throw error
      deps.log.warn(error.message)
    })))
    await own(deps).open()
  },
  routes: (deps) => imageRoutes(own(deps), ({ principal }, repository) => principal !== null && deps.apiKeys.mayWrite(principal, repository)),
  async stop (deps) {
    await own(deps).close()
  }
})

function own (deps: Deps): Images {
  if (deps.images instanceof Images) return deps.images
  throw new Error('the service "images" is not the one that this plugin made')
}
