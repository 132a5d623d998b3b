// The parts of a server that builds need, beside the real plugin volumes: images are scripted, and whoever does the builds.
import { Type } from 'typebox'
import { definePlugin, type Plugin } from '../../../core/plugins/manifest.ts'
import type { Clocks } from '../../../core/steady-clock.ts'
import { buildsPlugin } from '../../../plugins/builds/index.ts'
import type { BuildRunner } from '../../../plugins/builds/run.ts'
import type { ImageService, ReadyImage } from '../../../plugins/images/contract.ts'
import { plugin as volumes } from '../../../plugins/volumes/index.ts'
import { digestOf } from './scripted-runner.ts'

/** @param requireImage what becomes of an image that is asked for @param clocks of builds; absent: the host's */
export function hostPlugins (runner: BuildRunner, requireImage: ImageService['require'] = imageOfBuild, clocks?: Clocks): readonly Plugin[] {
  const refuse = (): never => { throw new Error('nobody asks for this here') }
  const images: ImageService = new Proxy(Object.create(null), { get: (_target, key) => key === 'require' ? requireImage : refuse })
  const imagesPlugin = definePlugin({
    manifest: { id: 'scripted-images', provides: ['images'], requires: [], config: Type.Object({}, { additionalProperties: false }) },
    create: () => ({ services: { images } })
  })
  return [volumes, imagesPlugin, buildsPlugin({ requires: [], optional: [], make: () => runner }, clocks)]
}

/** The image of a build is there, and is what the build has made. */
async function imageOfBuild (reference: string): Promise<ReadyImage> {
  const [, id = ''] = /^localhost\/builds\/([a-z0-9]+):latest$/.exec(reference) ?? []
  return { name: reference, digest: digestOf(id), status: 'ready', createdAt: new Date(0), rootfs: '/nonexistent.erofs' }
}
