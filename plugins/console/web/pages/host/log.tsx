// The server's own log, live.
import { useEffect, useMemo, useState } from 'preact/hooks'
import { createLogLines } from '../../parts/log-lines.ts'
import { LogView } from '../../parts/log-view.tsx'
import { whileSeen } from '../../state/seen.ts'
import { linesOf, type HostLogLine } from './log-text.ts'

const LEVELS = { trace: 'Everything', debug: 'Debug and above', info: 'Info and above', warn: 'Warnings and errors', error: 'Errors' } as const
const MOST_AT_ONCE = 10_000

export function HostLog () {
  const [level, setLevel] = useState<keyof typeof LEVELS>('trace')
  const [over, setOver] = useState<string | undefined>(undefined)
  const [round, setRound] = useState(0)
  const log = useMemo(() => createLogLines(), [level, round])
  useEffect(() => whileSeen(() => {
    const stream = new EventSource(`/host/log/stream?level=${level}&limit=${MOST_AT_ONCE}`)
    log.clear()
    setOver(undefined)
    stream.addEventListener('open', () => { setOver(undefined) })
    stream.addEventListener('message', ({ data }) => { for (const line of linesOf(JSON.parse(String(data)) as HostLogLine)) log.add(line) })
    stream.addEventListener('missed', ({ data }) => { log.add(`… ${(JSON.parse(String(data)) as { readonly lines: number }).lines} lines came too fast to be shown …`) })
    // The browser goes on behind the line that it had last, unless the server refuses it.
    stream.addEventListener('error', () => { setOver(stream.readyState === EventSource.CLOSED ? 'the stream was cut off' : 'the connection was lost, and is being tried again') })
    return () => { stream.close() }
  }), [log])
  return (
    <LogView log={log} over={over} onAgain={() => { setRound(round + 1) }} empty='Nothing of this was logged since the start of the server, as far as it remembers.'>
      <select aria-label='Level' value={level} onChange={(event) => { setLevel(event.currentTarget.value as keyof typeof LEVELS) }}>{Object.entries(LEVELS).map(([key, title]) => <option key={key} value={key}>{title}</option>)}</select>
    </LogView>
  )
}
