// The service `eventFeed`: the journal for readers inside of this server.
import type { EventFeed } from './contract.ts'
import { bodyOf } from './journal/event.ts'
import type { EventJournal } from './journal/journal.ts'
import type { Events } from './service.ts'
import { wantsOf } from './stream/filter.ts'

export function createFeed (events: Pick<Events, 'checkFilter'>, journal: EventJournal): EventFeed {
  return {
    check: (filter) => { events.checkFilter(filter) },
    window: async () => await journal.window(),
    resumed: (place) => journal.resumed(place),
    async page (place, filter, may) {
      const head = journal.head()
      const found = await journal.after(place)
      if (found === undefined) return undefined
      const wants = wantsOf(filter, may)
      return {
        events: found.filter((event) => wants(event)).map((event) => ({ id: event.id, resource: event.resource, body: bodyOf(event) })),
        // Ids have gaps.
        at: found.at(-1)?.id ?? Math.max(place, head)
      }
    },
    wait: async (place, timeoutMs, signal) => { await journal.wait(place, timeoutMs, signal) }
  }
}
