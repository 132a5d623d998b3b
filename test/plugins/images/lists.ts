// The lists of images, for test/core/db/page.long.test.ts.
import { manifest } from '../../../plugins/images/manifest.ts'
import { ImagesRepository } from '../../../plugins/images/repository.ts'
import type { ListsOfPlugin } from '../../helpers/lists.ts'

export const lists: ListsOfPlugin = {
  manifest,
  long: {
    tables: ['images_tags', 'images_contents'],
    of (database, hostId) {
      const images = new ImagesRepository(database, hostId)
      return {
        lists: [
          ['images by name', async (page) => await images.page({}, { ...page, sort: 'name' })],
          ['images by time', async (page) => await images.page({}, { ...page, sort: '-created_at' })],
          ['images of a status', async (page) => await images.page({ status: 'ready' }, { ...page, sort: 'name' })]
        ],
        single: [['an image by its name', async () => (await images.page({ name: 'registry.example.com/team/image-77:latest' }, { limit: 10, sort: 'created_at' })).items, /images_by_name/]]
      }
    }
  }
}
