// The output of an instance, live. Only the visible lines are in the page, so that very many lines do no harm.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { path } from '../../api/call.ts'
import type { Instance } from '../../api/types.ts'
import { Button } from '../../parts/button.tsx'
import { createLogLines, MOST_LINES } from './log-lines.ts'

const SOURCES = { app: 'Program', vmm: 'Virtual machine', hypeman: 'Operations' } as const
const LINE = 18
const AROUND = 20

export function Logs ({ instance: { id, state } }: { readonly instance: Instance }) {
  const [source, setSource] = useState<keyof typeof SOURCES>('app')
  const [isPaused, setPaused] = useState(false)
  const [wanted, setWanted] = useState('')
  const [isOver, setOver] = useState(false)
  const [round, setRound] = useState(0)
  const log = useMemo(() => createLogLines(), [id, source, round])
  useEffect(() => {
    const stream = new EventSource(`${path`/instances/${id}/logs`}?source=${source}&tail=${MOST_LINES}&follow=true`)
    setOver(false)
    stream.addEventListener('message', ({ data }) => { log.add(String(JSON.parse(String(data)))) })
    // The browser would request all of it again, and every line would appear twice.
    stream.addEventListener('error', () => { stream.close(); setOver(true) })
    return () => { stream.close() }
  }, [log])
  const version = log.version.value
  const frozen = useRef<readonly string[]>([])
  const isSearching = wanted !== ''
  const shown = useMemo(() => {
    if (isPaused && !isSearching) return frozen.current
    const lines = isSearching ? log.lines.filter((line) => line.toLowerCase().includes(wanted.toLowerCase())) : log.lines
    return lines
  }, [isSearching ? version : isPaused, isPaused, wanted, log])
  const pause = (): void => { frozen.current = [...log.lines]; setPaused(!isPaused) }
  return (
    <section class='logs' aria-label='Logs'>
      <div class='bar'>
        <select aria-label='Source' value={source} onChange={(event) => { setSource(event.currentTarget.value as keyof typeof SOURCES) }}>{Object.entries(SOURCES).map(([key, title]) => <option key={key} value={key}>{title}</option>)}</select>
        <input type='search' class='search' placeholder='Only lines with' aria-label='Only lines with' value={wanted} onInput={(event) => { setWanted(event.currentTarget.value) }} />
        <Button onPress={pause}>{isPaused ? 'Follow' : 'Pause'}</Button>
        {isOver && <Button onPress={() => { setRound(round + 1) }}>Read again</Button>}
        <span class='quiet' role='status'>{shown.length.toLocaleString()} lines{isSearching && ` of ${log.lines.length.toLocaleString()}`}{isOver ? state === 'Running' ? ', the stream was cut off' : ', the log is complete' : isPaused ? ', paused' : ''}</span>
      </div>
      <Lines lines={shown} version={isPaused && !isSearching ? -1 : version} follows={!isPaused} />
    </section>
  )
}

function Lines ({ lines, version, follows }: { readonly lines: readonly string[], readonly version: number, readonly follows: boolean }) {
  const frame = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  const [isAtEnd, setAtEnd] = useState(true)
  useLayoutEffect(() => {
    const { current } = frame
    if (current !== null && follows && isAtEnd) current.scrollTop = current.scrollHeight
  }, [version, lines, follows])
  const height = frame.current?.clientHeight ?? 600
  const first = Math.max(0, Math.floor(top / LINE) - AROUND)
  const visible = lines.slice(first, first + Math.ceil(height / LINE) + 2 * AROUND)
  return (
    <div
      ref={frame} class='lines' tabIndex={0} role='log' aria-label='Lines' aria-live='off' onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget
        setTop(scrollTop)
        setAtEnd(scrollHeight - scrollTop - clientHeight < 2 * LINE)
      }}
    >
      <div style={{ height: `${lines.length * LINE}px`, position: 'relative' }}>
        <pre style={{ transform: `translateY(${first * LINE}px)` }}>{visible.map((line) => line === '' ? ' ' : line).join('\n')}</pre>
      </div>
      {lines.length === 0 && <p class='quiet'>Nothing was printed yet.</p>}
    </div>
  )
}
