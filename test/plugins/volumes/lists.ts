// The lists of volumes, for test/core/db/page.long.test.ts.
import { manifest } from '../../../plugins/volumes/manifest.ts'
import { VolumeRepository } from '../../../plugins/volumes/repository.ts'
import type { ListsOfPlugin } from '../../helpers/lists.ts'

export const lists: ListsOfPlugin = {
  manifest,
  long: {
    tables: ['volumes_volumes'],
    of (database, hostId) {
      const volumes = new VolumeRepository(database, hostId)
      return {
        lists: [
          ['volumes by time', async (page) => await volumes.page({}, { ...page, sort: 'created_at' })],
          ['volumes by name', async (page) => await volumes.page({}, { ...page, sort: '-name' })],
          ['volumes by size', async (page) => await volumes.page({}, { ...page, sort: 'size_gb' })]
        ],
        single: [
          ['a volume by its id', async () => await volumes.alike('a0000000000000000000005k', undefined)],
          ['a volume by its name', async () => await volumes.alike('volume-77', undefined)],
          ['volumes of a name', async () => (await volumes.page({ name: 'volume-77' }, { limit: 10, sort: 'created_at' })).items, /volumes_by_name|sqlite_autoindex/]
        ]
      }
    }
  }
}
