// Why there is no image for builds.
import { defineError } from '../../../core/errors/define.ts'

export const BuilderImageUnavailable = defineError('builder_image_unavailable', 'unavailable', (why: string) =>
  `the image of builders could not be made of Debian packages: ${why}`)
