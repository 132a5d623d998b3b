// The plugin "events": the changes on this server, as a stream without losses.
import { durationMs } from '../../core/config/quantities.ts'
import { definePlugin } from '../../core/plugins/manifest.ts'
import { createFeed } from './feed.ts'
import { EventJournal } from './journal/journal.ts'
import { JournalRepository } from './journal/repository.ts'
import { manifest, type EventsConfig, type Deps } from './manifest.ts'
import { createEventsMetrics } from './metrics.ts'
import { eventRoutes } from './routes.ts'
import { Events } from './service.ts'

function compose (deps: Deps, config: EventsConfig): Events {
  const { database, apiKeys, metrics, server: { hostId } } = deps
  const events: Events = new Events({
    log: deps.log.child({ plugin: manifest.id }),
    journal: new EventJournal(new JournalRepository(database, hostId)),
    apiKeys,
    bounds: { maxRows: config.maxEvents, maxAgeMs: durationMs(config.maxAge) },
    maxStreams: config.maxStreams,
    heartbeatMs: durationMs(config.heartbeat)
  })
  createEventsMetrics(metrics, () => events.openStreams())
  return events
}

export const plugin = definePlugin({
  manifest,
  create (deps, config) {
    const events = compose(deps, config)
    return {
      services: { journal: events.journal, eventFeed: createFeed(events, events.journal) },
      start: async () => { await events.open() },
      routes: eventRoutes(events, deps.apiKeys),
      stop: async () => { await events.close() }
    }
  }
})
