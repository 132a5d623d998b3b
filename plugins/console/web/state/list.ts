// A list of the API that stays right: read once, and again when something of it changed.
import { signal, type Signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { call, messageOf } from '../api/call.ts'
import { onChange } from './live.ts'

/** Changes come in bursts; one reading is enough for each. */
const PAUSE_MS = 250

export interface Loaded<T> {
  /** `undefined` until it was read */
  readonly data: Signal<T | undefined>
  readonly error: Signal<string>
  reload (): void
}

/** @param resources kinds whose events mean that it has changed, and an id when only its matter */
export function useLoaded<T> (url: string, resources: readonly string[], id?: string): Loaded<T> {
  const loaded = useMemo(() => createLoaded<T>(url), [url])
  useEffect(() => {
    loaded.reload()
    const leave = onChange((event) => {
      if (event === 'everything' || (event.data !== undefined && resources.includes(event.data.resource) && (id === undefined || event.data.id === id || event.data.name === id))) loaded.later()
    })
    return () => {
      leave()
      loaded.close()
    }
  }, [url])
  return loaded
}

function createLoaded<T> (url: string): Loaded<T> & { later (): void, close (): void } {
  const data = signal<T | undefined>(undefined)
  const error = signal('')
  let timer: ReturnType<typeof setTimeout> | undefined
  let running = false
  let again = false
  let closed = false
  const reload = async (): Promise<void> => {
    if (running) { again = true; return }
    running = true
    try {
      const value = await call<T>('GET', url)
      if (!closed) { data.value = value; error.value = '' }
    } catch (fault) {
      if (!closed) error.value = messageOf(fault)
    }
    running = false
    if (again && !closed) { again = false; void reload() }
  }
  return {
    data,
    error,
    reload: () => { closed = false; void reload() },
    later: () => { timer ??= setTimeout(() => { timer = undefined; void reload() }, PAUSE_MS) },
    close: () => { closed = true; clearTimeout(timer); timer = undefined }
  }
}
