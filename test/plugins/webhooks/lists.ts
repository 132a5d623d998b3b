// The list of webhooks, for test/core/db/page.long.test.ts.
import { manifest } from '../../../plugins/webhooks/manifest.ts'
import { WebhookRepository } from '../../../plugins/webhooks/repository.ts'
import { commonOf, UNREAD, type ListsOfPlugin } from '../../helpers/lists.ts'

export const lists: ListsOfPlugin = {
  manifest,
  short: {
    tables: ['webhooks_webhooks'],
    async store (database, hostId, count) {
      await database.batchInsert('webhooks_webhooks', Array.from({ length: count }, (_, index) => ({
        ...commonOf(hostId, count, index), url: 'http://127.0.0.1:9/', filter: '{}', secret: '', key_id: 'a', enabled: 1, status: ['active', 'failing', 'dead'][index % 3], position: 0, attempts: 0
      })), 30)
    },
    of (database, hostId) {
      const webhooks = new WebhookRepository(database, hostId, UNREAD)
      return {
        lists: [
          ['webhooks by time', 1, async (page) => await webhooks.page({}, { ...page, sort: 'created_at' }), ({ createdAt }) => createdAt],
          ['webhooks by time, latest first', 1, async (page) => await webhooks.page({}, { ...page, sort: '-created_at' }), ({ createdAt }) => -createdAt],
          ['webhooks by status', 1, async (page) => await webhooks.page({}, { ...page, sort: 'status' }), ({ status }) => status],
          ['webhooks that are dead', 1 / 3, async (page) => await webhooks.page({ status: 'dead' }, { ...page, sort: 'created_at' }), ({ createdAt }) => createdAt]
        ],
        single: []
      }
    }
  }
}
