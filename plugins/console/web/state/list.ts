// A list of the API that stays current: it is read once, and again after changes.
import { signal, type Signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { call, isNotFound, messageOf } from '../api/call.ts'
import type { ApiEvent } from '../api/types.ts'
import { onChange } from './live.ts'

/** Changes come in bursts; one read is enough for a burst. */
const PAUSE_MS = 250
/** More changed rows than this are read by reading the whole list. */
const FEW_ROWS = 20

export interface Loaded<T> {
  /** `undefined` until it was read */
  readonly data: Signal<T | undefined>
  readonly error: Signal<string>
  /** the server has no such list: the plugin that would have it does not run */
  readonly isAbsent: Signal<boolean>
  reload (): void
}

/** @param resources kinds of resources whose events mean that the data has changed, and an id when only that one matters */
export function useLoaded<T> (url: string, resources: readonly string[], id?: string): Loaded<T> {
  return useFollowed(url, resources, () => createLoaded<T>(url), id)
}

/** A list that reads only the changed rows again, so that one change costs the same however long the list is. */
export function useRows<T extends { readonly id: string }> (url: string, resource: string): Loaded<readonly T[]> {
  return useFollowed(url, [resource], () => createRows<T>(url))
}

export function createRows<T extends { readonly id: string }> (url: string): Followed<readonly T[]> {
  const loaded: Running<readonly T[]> = createLoaded<readonly T[]>(url, async (ids) => await readRows(url, ids, loaded.data))
  return {
    ...loaded,
    forget: (id) => {
      loaded.data.value = loaded.data.peek()?.filter((row) => row.id !== id)
      loaded.outdate()
    }
  }
}

/** What an event of the server's means for what was loaded. */
export function noteEvent (loaded: Pick<Followed<unknown>, 'later' | 'forget'>, event: ApiEvent | 'everything'): void {
  if (event === 'everything') loaded.later()
  else if (event.data !== undefined && event.type.endsWith('.deleted') && loaded.forget !== undefined) loaded.forget(event.data.id)
  else loaded.later(event.data?.id)
}

function useFollowed<T> (url: string, resources: readonly string[], create: () => Followed<T>, id?: string): Loaded<T> {
  const loaded = useMemo(create, [url])
  useEffect(() => {
    loaded.reload()
    const leave = onChange((event) => {
      if (event === 'everything' || (event.data !== undefined && resources.includes(event.data.resource) && (id === undefined || event.data.id === id || event.data.name === id))) {
        noteEvent(loaded, event)
      }
    })
    return () => {
      leave()
      loaded.close()
    }
  }, [url])
  return loaded
}

export interface Followed<T> extends Loaded<T> {
  /** Schedules a read of this id; without one, of everything. */
  later (id?: string): void
  /** The object was deleted, and nothing needs to be read; absent: it is read what is left. */
  forget? (id: string): void
  close (): void
}

interface Running<T> extends Followed<T> {
  /** What is being read may be older than what is known by now: it is read once more, all of it. */
  outdate (): void
}

/** `false` when the whole list must be read: one of the rows is new. */
async function readRows<T extends { readonly id: string }> (url: string, ids: ReadonlySet<string>, data: Signal<readonly T[] | undefined>): Promise<readonly T[] | false> {
  const known = new Set(data.peek()?.map(({ id }) => id))
  if ([...ids].some((id) => !known.has(id))) return false
  const rows = new Map(await Promise.all([...ids].map(async (id): Promise<[string, T | undefined]> => [id, await call<T>('GET', `${url}/${encodeURIComponent(id)}`).catch(goneOrFault)])))
  return (data.peek() ?? []).flatMap((row) => rows.has(row.id) ? rows.get(row.id) ?? [] : row)
}

function goneOrFault (error: unknown): undefined {
  if (isNotFound(error)) return undefined
  throw error
}

export function createLoaded<T> (url: string, readSome?: (ids: ReadonlySet<string>) => Promise<T | false>): Running<T> {
  const data = signal<T | undefined>(undefined)
  const error = signal('')
  const isAbsent = signal(false)
  let timer: ReturnType<typeof setTimeout> | undefined
  let running = false
  let again = false
  let closed = false
  let changed = new Set<string>()
  let isWhole = false
  const reload = async (): Promise<void> => {
    if (running) { again = true; return }
    running = true
    const ids = changed
    const whole = isWhole || readSome === undefined || ids.size === 0 || ids.size > FEW_ROWS
    changed = new Set()
    isWhole = false
    try {
      const value = whole ? await call<T>('GET', url) : await readSome(ids).then(async (some) => some === false ? await call<T>('GET', url) : some)
      if (!closed) { data.value = value; error.value = ''; isAbsent.value = false }
    } catch (fault) {
      // Which rows were to be read is no longer known.
      isWhole = true
      if (!closed) { error.value = messageOf(fault); isAbsent.value = isNotFound(fault) }
    }
    running = false
    if (again && !closed) { again = false; void reload() }
  }
  return {
    data,
    error,
    isAbsent,
    reload: () => { closed = false; isWhole = true; void reload() },
    later: (id) => {
      if (id === undefined) isWhole = true
      else changed.add(id)
      timer ??= setTimeout(() => { timer = undefined; void reload() }, PAUSE_MS)
    },
    outdate: () => { if (running) { isWhole = true; again = true } },
    close: () => { closed = true; clearTimeout(timer); timer = undefined }
  }
}
