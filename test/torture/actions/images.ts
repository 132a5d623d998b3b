// Images are pushed, converted and removed.
import { pushFromURL } from '@onkernel/hypeman/lib/push'
import { makeImage } from '../../helpers/images.ts'
import { IMAGES, type Choose } from './action.ts'

export const pushImage: Choose = (random) => {
  const [name, content] = [random.pick(IMAGES), random.below(1_000_000)]
  const files = 1 + random.below(200)
  return {
    text: `push ${name} of ${files} files, content ${content}`,
    run: async (world) => {
      const image = makeImage([Array.from({ length: files }, (_, index) => ({ path: `file-${index}`, content: `${content}-${index}`.repeat(500) }))], { Cmd: ['/none'] })
      return await world.attempt(`push ${name}`, async (url, key) => { await pushFromURL(url, key, image, `torture/${name}:latest`) })
    }
  }
}

export const deleteImage: Choose = (random) => {
  const name = random.pick(IMAGES)
  return { text: `delete ${name}`, run: async (world) => (await world.call('DELETE', `/images/${encodeURIComponent(`${world.registry}/torture/${name}:latest`)}`)).summary }
}
