// The requests through the proxy, polled while the page is open.
import { signal, type Signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { call, isNotFound, messageOf, path } from '../api/call.ts'
import type { EgressLog, Instance } from '../api/types.ts'
import type { EgressRow } from '../pages/egress/egress-table.tsx'

const EVERY_MS = 2000
const KEPT = 1000

export interface EgressFeed {
  /** newest first */
  readonly rows: Signal<readonly EgressRow[]>
  readonly modes: Signal<ReadonlyMap<string, EgressLog['mode']>>
  readonly error: Signal<string>
  /** no instance has one: the plugin does not run */
  readonly isAbsent: Signal<boolean>
}

export function useEgress (instances: readonly Instance[]): EgressFeed {
  const feed = useMemo<EgressFeed>(() => ({ rows: signal([]), modes: signal(new Map()), error: signal(''), isAbsent: signal(false) }), [])
  const key = instances.map(({ id }) => id).join()
  useEffect(() => {
    const after = new Map<string, number>()
    let isGone = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const round = async (): Promise<void> => {
      const fresh: EgressRow[] = []
      let absent = 0
      for (const { id, name } of instances) {
        // Without a policy there are no new requests.
        if (feed.modes.peek().get(id) === 'none' || isGone) continue
        try {
          const { mode, entries, next } = await call<EgressLog>('GET', `${path`/instances/${id}/egress`}?limit=500${after.has(id) ? `&after=${after.get(id) ?? 0}` : ''}`)
          after.set(id, next)
          if (feed.modes.peek().get(id) !== mode) feed.modes.value = new Map(feed.modes.peek()).set(id, mode)
          fresh.push(...entries.map((entry) => ({ ...entry, instanceId: id, instanceName: name })))
          feed.error.value = ''
        } catch (error) {
          // One that was deleted meanwhile has none either.
          if (isNotFound(error)) absent++
          else feed.error.value = messageOf(error)
        }
      }
      if (isGone) return
      feed.isAbsent.value = absent > 0 && absent === instances.length
      if (fresh.length > 0) {
        const known = new Set(feed.rows.peek().map(({ instanceId, seq }) => `${instanceId} ${seq}`))
        const added = fresh.filter(({ instanceId, seq }) => !known.has(`${instanceId} ${seq}`))
        feed.rows.value = [...added, ...feed.rows.peek()].sort((a, b) => a.time < b.time ? 1 : -1).slice(0, KEPT)
      }
      if (!feed.isAbsent.value) timer = setTimeout(() => { void round() }, EVERY_MS)
    }
    void round()
    return () => { isGone = true; clearTimeout(timer) }
  }, [key])
  return feed
}
