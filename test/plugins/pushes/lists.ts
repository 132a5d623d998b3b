// The list of pushes, for test/core/db/page.long.test.ts.
import { manifest } from '../../../plugins/pushes/manifest.ts'
import { PushRepository } from '../../../plugins/pushes/repository.ts'
import type { ListsOfPlugin } from '../../helpers/lists.ts'

export const lists: ListsOfPlugin = {
  manifest,
  long: {
    tables: ['pushes_pushes'],
    of (database, hostId) {
      const pushes = new PushRepository(database, hostId)
      return {
        lists: [
          ['pushes by time', async (page) => await pushes.page({}, { ...page, sort: '-created_at' })],
          ['pushes by status', async (page) => await pushes.page({}, { ...page, sort: 'status' })]
        ],
        single: []
      }
    }
  }
}
