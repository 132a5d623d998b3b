// Lines of a log, live, with search and pause. Only the visible lines are in the page, so that very many lines do no harm.
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Button } from './button.tsx'
import type { LogLines } from './log-lines.ts'

const LINE = 18
const AROUND = 20

interface LogViewProps {
  readonly log: LogLines
  /** choices of what is shown, before the search */
  readonly children?: ComponentChildren
  /** why nothing more comes; absent: the log is followed */
  readonly over?: string | undefined
  /** Reads everything anew; offered when nothing more comes. */
  readonly onAgain: () => void
  /** shown instead of lines when there are none */
  readonly empty: string
}

export function LogView ({ log, children, over, onAgain, empty }: LogViewProps) {
  const [isPaused, setPaused] = useState(false)
  const [wanted, setWanted] = useState('')
  const version = log.version.value
  const frozen = useRef<readonly string[]>([])
  const isSearching = wanted !== ''
  const shown = useMemo(() => {
    if (isPaused && !isSearching) return frozen.current
    return isSearching ? log.lines.filter((line) => line.toLowerCase().includes(wanted.toLowerCase())) : log.lines
  }, [isSearching ? version : isPaused, isPaused, wanted, log])
  const pause = (): void => { frozen.current = [...log.lines]; setPaused(!isPaused) }
  return (
    <section class='logs' aria-label='Log'>
      <div class='bar'>
        {children}
        <input type='search' class='search' placeholder='Only lines with' aria-label='Only lines with' value={wanted} onInput={(event) => { setWanted(event.currentTarget.value) }} />
        <Button onPress={pause}>{isPaused ? 'Follow' : 'Pause'}</Button>
        {over !== undefined && <Button onPress={onAgain}>Read again</Button>}
        <span class='quiet' role='status'>{shown.length.toLocaleString()} {shown.length === 1 ? 'line' : 'lines'}{isSearching && ` of ${log.lines.length.toLocaleString()}`}{over !== undefined ? `, ${over}` : isPaused ? ', paused' : ''}</span>
      </div>
      <Lines lines={shown} version={isPaused && !isSearching ? -1 : version} follows={!isPaused} empty={isSearching && log.lines.length > 0 ? 'No line has this.' : empty} />
    </section>
  )
}

function Lines ({ lines, version, follows, empty }: { readonly lines: readonly string[], readonly version: number, readonly follows: boolean, readonly empty: string }) {
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
      {lines.length === 0 && <p class='quiet'>{empty}</p>}
    </div>
  )
}
