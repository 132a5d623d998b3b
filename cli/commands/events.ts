// `berth events`: follows changes, across lost connections and restarts of the server.
import { setTimeout as delay } from 'node:timers/promises'
import { AGAIN_MS, isAway, PATIENCE_MS } from '../api/away.ts'
import type { Api } from '../api/client.ts'
import { parseJson } from '../api/json.ts'
import { events } from '../api/sse.ts'
import { clean } from '../../core/clean-text.ts'
import { formatted } from '../output/format.ts'
import { writeAll } from '../output/write.ts'
import type { Input } from '../input.ts'
import type { Session } from '../session.ts'
import type { Run } from '../spec.ts'

interface ChangeEvent { readonly type: string, readonly timestamp?: string, readonly data?: { readonly id: string, readonly name?: string | null, readonly status?: string } }

export const run: Run = async (session, input) => {
  const api = await session.api()
  let after = input.text('after')
  for (let heard = performance.now(), isFirst = true; ; isFirst = false) {
    try {
      for await (const { id, event } of read(api, input, after)) {
        heard = performance.now()
        after = id ?? after
        await show(session, event)
      }
    } catch (error) {
      if (!isAway(error) || (isFirst && after === undefined) || performance.now() - heard > PATIENCE_MS) throw error
    }
    await delay(AGAIN_MS, undefined, { signal: session.interrupted })
  }
}

async function * read (api: Api, input: Input, after: string | undefined): AsyncGenerator<{ id: string | undefined, event: ChangeEvent }> {
  const resources = input.list('resource')
  const answer = await api.stream('GET', '/events', { query: { resource: resources.length === 0 ? undefined : resources.join(','), id: input.text('id'), tags: input.pairs('tag'), after } })
  for await (const { id, data } of events(answer, api.target)) yield { id, event: parseJson<ChangeEvent>(data) }
}

/** Messages of the stream about itself are not shown to people. */
const OF_THE_STREAM = ['ready', 'bookmark']

async function show (session: Session, event: ChangeEvent): Promise<void> {
  const { type, timestamp, data } = event
  if (session.format !== 'table') await writeAll(process.stdout, `${await formatted(event, session.format === 'json' ? 'jsonl' : session.format)}\n`)
  else if (!OF_THE_STREAM.includes(type)) await writeAll(process.stdout, `${clean([timestamp ?? '', type, data?.name ?? data?.id ?? '', data?.status ?? ''].join('  '))}\n`)
}
