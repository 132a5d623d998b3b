// The lists of builds and builders, for test/core/db/page.long.test.ts.
import { BuilderRepository } from '../../../plugins/builds/builders/repository.ts'
import { manifest } from '../../../plugins/builds/manifest.ts'
import { BuildRepository } from '../../../plugins/builds/repository.ts'
import { commonOf, padded, type ListsOfPlugin } from '../../helpers/lists.ts'

export const lists: ListsOfPlugin = {
  manifest,
  long: {
    tables: ['builds_builds'],
    of (database, hostId) {
      const builds = new BuildRepository(database, hostId)
      return {
        lists: [
          ['builds by time', async (page) => await builds.page({}, { ...page, sort: '-created_at' })],
          ['builds of a status', async (page) => await builds.page({ status: 'failed' }, { ...page, sort: 'created_at' })]
        ],
        single: []
      }
    }
  },
  short: {
    tables: ['builds_builders'],
    async store (database, hostId, count) {
      await database.batchInsert('builds_builders', Array.from({ length: count }, (_, index) => ({ ...commonOf(hostId, count, index), status: ['ready', 'pruning', 'error'][index % 3], name: `builder-${padded(index)}`, disk_size_gb: 1, volume_id: 'v', tags: '{}' })), 30)
    },
    of (database, hostId) {
      const builders = new BuilderRepository(database, hostId)
      return {
        lists: [
          ['builders by time', 1, async (page) => await builders.page({}, { ...page, sort: 'created_at' }), ({ createdAt }) => createdAt],
          ['builders that failed', 1 / 3, async (page) => await builders.page({ status: 'error' }, { ...page, sort: '-created_at' }), ({ createdAt }) => -createdAt],
          // A builder's name is free text of any length, and need not be unique: there is no index over it.
          ['builders by name', 1, async (page) => await builders.page({}, { ...page, sort: 'name' }), ({ name }) => name, true]
        ],
        single: [['builders of a name', async () => (await builders.page({ name: 'builder-077' }, { limit: 10, sort: '-name' })).items]]
      }
    }
  }
}
