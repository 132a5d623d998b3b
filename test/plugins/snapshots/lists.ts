// The lists of snapshots, for test/core/db/page.long.test.ts.
import { manifest } from '../../../plugins/snapshots/manifest.ts'
import { ScheduleRepository } from '../../../plugins/snapshots/schedules/repository.ts'
import { SnapshotRepository } from '../../../plugins/snapshots/repository.ts'
import type { ListsOfPlugin } from '../../helpers/lists.ts'

export const lists: ListsOfPlugin = {
  manifest,
  long: {
    tables: ['snapshots_snapshots'],
    of (database, hostId) {
      const snapshots = new SnapshotRepository(database, hostId)
      return {
        lists: [
          ['snapshots by time', async (page) => await snapshots.page({}, { ...page, sort: '-created_at' })],
          ['snapshots by name', async (page) => await snapshots.page({}, { ...page, sort: 'name' })],
          ['snapshots of a source', async (page) => await snapshots.page({ sourceId: 'a00000000000000000000007' }, { ...page, sort: 'created_at' })]
        ],
        single: [
          ['a snapshot by the beginning of its id', async () => await snapshots.alike('a0000000000000000000005k')],
          ['a snapshot by its name', async () => (await snapshots.page({ name: 'snapshot-77' }, { limit: 10, sort: 'created_at' })).items, /snapshots_by_name/],
          ['schedules that are due', async () => [await new ScheduleRepository(database, hostId).due(1)], /snapshots_schedules_due/],
          ['sources of snapshots by a name', async () => await snapshots.sourcesAlike('web-7')]
        ]
      }
    }
  }
}
